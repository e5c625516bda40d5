import { Plain } from "@/shared/ui";
import { count } from "@/shared/format/numbers";
import type { CsvStart } from "./csv";
import styles from "./NewJob.module.css";

const MOST_COLUMNS = 40;

/** The file's first records. Wide ones scroll inside their own box. */
export function FirstRows({ start }: { start: Pick<CsvStart, "columns" | "rows"> }) {
  const columns = start.columns.slice(0, MOST_COLUMNS);
  const more = start.columns.length - columns.length;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it
    <div className={styles.rows} tabIndex={0} role="region" aria-label="First rows of the CSV">
      <table>
        <thead>
          <tr>
            {columns.map((name, index) => (
              // oxlint-disable-next-line react/no-array-index-key -- names may repeat
              <th key={index} scope="col">
                <Plain max={30}>{name}</Plain>
              </th>
            ))}
            {more > 0 && <th scope="col">{count(more)} more columns</th>}
          </tr>
        </thead>
        <tbody>
          {start.rows.map((row, index) => (
            // oxlint-disable-next-line react/no-array-index-key -- rows have no name
            <tr key={index}>
              {columns.map((_, column) => (
                // oxlint-disable-next-line react/no-array-index-key -- cells have no name
                <td key={column}>
                  <Plain max={30}>{row[column] ?? ""}</Plain>
                </td>
              ))}
              {more > 0 && <td>…</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
