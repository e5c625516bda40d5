import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { count, plural } from "@/shared/format/numbers";
import { plainName, sentence } from "@/shared/format/text";
import type { Body } from "@/shared/api/types";
import { Button, Problem } from "@/shared/ui";
import { ColumnField } from "./ColumnField";
import styles from "./DealPreview.module.css";
import type { Dataset, Draft } from "./draft";
import { optionProblems, partitionerOptionsOf } from "./options";
import { dealQuery } from "./queries";

type Deal = Body<"DealPreview">;
const MOST_BARS = 24;
const TONES = ["a", "b", "c", "d", "e", "f"] as const;

interface Props {
  draft: Draft;
  dataset: Dataset;
  update: (change: Partial<Draft>) => void;
}

/** What the chosen deal gives to each chunk, before anything is paid. */
export function DealPreview({ draft, dataset, update }: Props) {
  const options = partitionerOptionsOf(draft);
  const [counted, setCounted] = useState<string | null>(null);
  const column = String(options.column ?? counted ?? (draft.target || dataset.columns.at(-1)) ?? "");
  const chunks = Number(draft.chunks);
  const isSound = Number.isInteger(chunks) && chunks >= 1 && chunks <= Math.min(1000, dataset.rows) && !Object.keys(optionProblems(draft)).some((name) => name.startsWith("partitioner_options."));
  const query = useQuery({
    ...dealQuery(dataset.id, { ...options, chunks, partitioner: draft.partitioner, column, seed: Number(draft.seed) || 0 }),
    enabled: isSound,
    placeholderData: keepPreviousData,
  });
  const deal = isSound ? query.data?.deal : undefined;
  return (
    <section className={styles.preview} aria-label="What each chunk gets">
      {options.column === undefined && <ColumnField label="Count the values of" hint="To see whether every chunk gets its share of them" columns={dataset.columns} value={column} onChange={setCounted} />}
      {isSound && query.error && <Problem error={query.error} />}
      {deal && (
        <>
          <Bars deal={deal} column={column} />
          {deal.warnings.length > 0 && (
            <div className={styles.warnings} role="status">
              <ul>
                {deal.warnings.map((words) => (
                  <li key={words}>{sentence(words)}</li>
                ))}
              </ul>
            </div>
          )}
          {deal.proposed === "stratified" && draft.partitioner !== "stratified" && (
            <Button onClick={() => update({ partitioner: "stratified", partitionerOptions: { ...draft.partitionerOptions, column } })}>Deal stratified by {plainName(column).slice(0, 40)}</Button>
          )}
        </>
      )}
    </section>
  );
}

function Bars({ deal, column }: { deal: Deal; column: string }) {
  const most = Math.max(1, ...deal.chunks.map((chunk) => chunk.rows));
  const shown = deal.chunks.slice(0, MOST_BARS);
  const hasLabels = deal.labels.length > 0 && deal.labels.length <= TONES.length;
  return (
    <figure className={styles.figure}>
      <div role="img" aria-label={`Rows of ${plural(deal.chunks.length, "chunk")}${hasLabels ? ` by ${plainName(column)}` : ""}; the table below has the numbers`}>
        {shown.map((chunk) => (
          <div key={chunk.chunk} className={styles.bar}>
            <span>Chunk {chunk.chunk}</span>
            <div className={styles.track}>
              {hasLabels && chunk.labels ? (
                chunk.labels.map((rows, place) => <i key={deal.labels[place]} className={styles[TONES[place] ?? "a"]} style={{ width: `${(100 * rows) / most}%` }} />)
              ) : (
                <i className={styles.a} style={{ width: `${(100 * chunk.rows) / most}%` }} />
              )}
            </div>
            <span>{count(chunk.rows)}</span>
          </div>
        ))}
      </div>
      {hasLabels && (
        <ul className={styles.legend}>
          {deal.labels.map((name, place) => (
            <li key={name}>
              <i className={styles[TONES[place] ?? "a"]} /> {shownLabel(name)}
            </li>
          ))}
        </ul>
      )}
      <figcaption>{shown.length < deal.chunks.length ? `The first ${MOST_BARS} of ${count(deal.chunks.length)} chunks` : "Rows of each chunk"}</figcaption>
      <details className={styles.numbers}>
        <summary>Numbers</summary>
        {/* It scrolls sideways where there are many values: keys must reach it. */}
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
        <div className={styles.scroll} tabIndex={0} role="region" aria-label="Rows of each chunk">
          <table>
            <thead>
              <tr>
                <th scope="col">Chunk</th>
                <th scope="col">Rows</th>
                {deal.labels.map((name) => (
                  <th scope="col" key={name}>
                    {shownLabel(name)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((chunk) => (
                <tr key={chunk.chunk}>
                  <th scope="row">{chunk.chunk}</th>
                  <td>{count(chunk.rows)}</td>
                  {chunk.labels?.map((rows, place) => (
                    <td key={deal.labels[place]}>{count(rows)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

const shownLabel = (name: string): string => (name ? plainName(name).slice(0, 30) : "(empty)");
