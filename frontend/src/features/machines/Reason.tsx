import { plainLog, sentence } from "@/shared/format/text";
import { CodeBlock, Plain } from "@/shared/ui";
import styles from "./Machines.module.css";

const SHORT = 140;

/** Why something ended: the first line and what the last one names; a long message can be opened. */
export function Reason({ text }: { text: string }) {
  const lines = plainLog(text)
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const [first = "", last] = [lines[0], lines.length > 1 ? lines.at(-1) : undefined];
  const isLong = lines.length > 2 || first.length > SHORT || (last?.length ?? 0) > SHORT;
  return (
    <div className={styles.reason}>
      <p>
        <Plain max={SHORT}>{sentence(first)}</Plain>
      </p>
      {last && (
        <p>
          <Plain max={SHORT}>{last}</Plain>
        </p>
      )}
      {isLong && (
        <details className={styles.more}>
          <summary>Whole message</summary>
          <CodeBlock label="whole message" text={text} maxHeight="18rem" />
        </details>
      )}
    </div>
  );
}
