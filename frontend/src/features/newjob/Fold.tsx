import { useState, type ReactNode } from "react";
import { Card, Plain } from "@/shared/ui";
import styles from "./NewJob.module.css";

/** A section that most jobs leave alone: closed, it says what is chosen. It opens for what is wrong in it, and stays open. */
export function Fold({ title, chosen, isWrong, children }: { title: string; chosen: string; isWrong: boolean; children: ReactNode }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <Card>
      <details className={styles.more} open={isOpen || isWrong} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary>
          <h2>{title}</h2>{" "}
          <span className={styles.chosen}>
            <Plain max={80}>{chosen}</Plain>
          </span>
        </summary>
        {children}
      </details>
    </Card>
  );
}
