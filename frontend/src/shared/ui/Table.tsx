import { memo, type Key, type ReactNode } from "react";
import styles from "./Table.module.css";
import { cx } from "./cx";

export interface Column<Row> {
  key: string;
  header: string;
  cell: (row: Row) => ReactNode;
  align?: "right";
  /** The title of the card that the row becomes on a phone. One column has it. */
  isTitle?: boolean;
  /** The header is for screen readers alone, such as that of a column of buttons. */
  hideHeader?: boolean;
  width?: string;
}

interface TableProps<Row> {
  /** Says what the table holds, for those who do not see the page. */
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => Key;
  rowClass?: (row: Row) => string | undefined;
}

/** A table, and on a phone a list of cards. The roles keep it a table for screen readers when its display changes. */
export function Table<Row>({ caption, columns, rows, rowKey, rowClass }: TableProps<Row>) {
  return (
    <table className={styles.table} role="table">
      <caption className="visually-hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column.key} scope="col" role="columnheader" className={cx(column.align && styles.right)} style={{ width: column.width }}>
              {column.hideHeader ? <span className="visually-hidden">{column.header}</span> : column.header}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <MemoRow key={rowKey(row)} columns={columns as Column<unknown>[]} row={row} className={rowClass?.(row)} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  columns: Column<unknown>[];
  row: unknown;
  className: string | undefined;
}

/** Refreshed data keeps the rows that did not change, and those are not drawn again. It needs columns that stay the same object. */
const MemoRow = memo(function Row({ columns, row, className }: RowProps) {
  return (
    <tr role="row" className={className}>
      {columns.map((column) => (
        <td key={column.key} role="cell" data-label={column.hideHeader ? "" : column.header} className={cx(column.align && styles.right, column.isTitle && styles.title)}>
          <div className={styles.value}>{column.cell(row)}</div>
        </td>
      ))}
    </tr>
  );
});
