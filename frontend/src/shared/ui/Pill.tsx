import type { ReactNode } from "react";
import styles from "./Pill.module.css";
import { cx } from "./cx";

export type Tone = "green" | "amber" | "red" | "blue" | "grey";
/** The mark tells states apart without colour: dot = busy, ring = idle or waiting, dash = away or ended, check = done, cross = failed. */
export type Mark = "dot" | "pulse" | "ring" | "dash" | "check" | "cross";

const PATHS: Record<Mark, ReactNode> = {
  dot: <circle cx="5" cy="5" r="3.2" fill="currentColor" />,
  pulse: <circle cx="5" cy="5" r="3.2" fill="currentColor" className={styles.pulse} />,
  ring: <circle cx="5" cy="5" r="3" fill="none" stroke="currentColor" strokeWidth="1.8" />,
  dash: <path d="M2 5h6" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />,
  check: <path d="m1.8 5.2 2.2 2.3 4.2-5" fill="none" stroke="currentColor" strokeWidth="1.9" strokeLinecap="round" strokeLinejoin="round" />,
  cross: <path d="m2.2 2.2 5.6 5.6m0-5.6L2.2 7.8" stroke="currentColor" strokeWidth="1.9" strokeLinecap="round" />,
};

export function Pill({ tone = "grey", mark = "dot", children }: { tone?: Tone; mark?: Mark; children: ReactNode }) {
  return (
    <span className={cx(styles.pill, styles[tone])}>
      <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
        {PATHS[mark]}
      </svg>
      <span>{children}</span>
    </span>
  );
}
