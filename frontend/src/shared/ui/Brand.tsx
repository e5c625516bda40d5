import { Link } from "react-router";
import styles from "./Brand.module.css";

/** The name with its mark: machines around one model. */
export function Brand({ to }: { to: string }) {
  return (
    <Link to={to} className={styles.brand}>
      <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
        <g fill="none" stroke="var(--green)" strokeWidth="2" strokeLinecap="round">
          <circle cx="11" cy="11" r="3" fill="var(--green)" />
          <path d="M11 8V3M11 14v5M8.4 12.5 4 15M13.6 12.5 18 15M8.4 9.5 4 7M13.6 9.5 18 7" />
        </g>
      </svg>
      Grid-X
    </Link>
  );
}
