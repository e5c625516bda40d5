import { sentence } from "@/shared/format/text";
import { Plain } from "@/shared/ui";
import styles from "./Job.module.css";
import type { Job } from "./queries";

/** What the server had to say of the order: it took it all the same. */
export function Warnings({ job }: { job: Job }) {
  if (job.warnings.length === 0) return null;
  return (
    <ul className={styles.warnings} aria-label="Warnings about the order">
      {job.warnings.map((words) => (
        <li key={words}>
          <Plain max={300}>{sentence(words)}</Plain>
        </li>
      ))}
    </ul>
  );
}
