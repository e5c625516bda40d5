import type { ReactNode } from "react";
import styles from "./Feedback.module.css";

/** Where a list has nothing: says what would stand here and how it comes to be. */
export function EmptyState({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <h2>{title}</h2>
      {children}
      {action && <div className={styles.action}>{action}</div>}
    </div>
  );
}
