import { useId, type ReactNode } from "react";
import styles from "./Card.module.css";
import { cx } from "./cx";

interface CardProps {
  title?: ReactNode;
  /** Small words right of the title. */
  note?: ReactNode;
  actions?: ReactNode;
  className?: string;
  children: ReactNode;
}

export function Card({ title, note, actions, className, children }: CardProps) {
  const id = useId();
  return (
    <section className={cx(styles.card, className)} aria-labelledby={title ? id : undefined}>
      {title && (
        <header className={styles.head}>
          <h2 id={id}>{title}</h2>
          {note && <span className={styles.note}>{note}</span>}
          {actions && <div className={styles.actions}>{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}
