import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { bytes, plural } from "@/shared/format/numbers";
import { duration } from "@/shared/format/times";
import { sentence } from "@/shared/format/text";
import { Button, Card, cx, Plain, Progress } from "@/shared/ui";
import { ColumnField } from "./ColumnField";
import { DatasetPicker } from "./DatasetPicker";
import type { Dataset, Draft, Errors } from "./draft";
import { FilePicker } from "./FilePicker";
import { FirstRows } from "./FirstRows";
import styles from "./NewJob.module.css";
import { OfferedData } from "./OfferedData";
import { previewQuery } from "./queries";
import type { useUpload } from "./useUpload";

interface Props {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
  upload: ReturnType<typeof useUpload>;
  take: (files: File[]) => void;
}

export function DataSection({ draft, update, errors, upload, take }: Props) {
  const isModel = draft.way === "model";
  return (
    <Card title="Data" note={isModel ? undefined : "a CSV with a header; comma, semicolon, tab or bar"}>
      {isModel && <OfferedData draft={draft} update={update} />}
      {isModel && draft.offered ? (
        errors.dataset && <p className={styles.error}>{errors.dataset}</p>
      ) : (
        <OwnData draft={draft} update={update} errors={errors} upload={upload} take={take} />
      )}
    </Card>
  );
}

function OwnData({ draft, update, errors, upload, take }: Props) {
  const id = useId();
  const error = errors.dataset;
  const { view, start } = upload;
  const isFree = !draft.dataset && view.step === "none";
  return (
    <>
      {isFree && (
        <>
          <div className={cx(styles.drop, error && styles.wrong)}>
            <p>Drop a CSV, of gigabytes if need be</p>
            <FilePicker label="Choose a CSV" accept=".csv,.tsv,.data,text/csv" onFiles={take} invalid={Boolean(error)} describedBy={error && `${id}-data`} />
          </div>
          <DatasetPicker onPick={(dataset) => update({ dataset })} />
        </>
      )}
      {view.step !== "none" && !draft.dataset && <UploadBox upload={upload} />}
      {error && (
        <p id={`${id}-data`} className={styles.error}>
          {error}
        </p>
      )}
      {draft.dataset && (
        <Chosen
          dataset={draft.dataset}
          onChange={() => {
            upload.forget();
            update({ dataset: null });
          }}
        />
      )}
      {start && <FirstRows start={start} />}
      {draft.dataset && !start && <Kept dataset={draft.dataset} />}
      {draft.way === "model" && draft.dataset && (
        <div className={styles.options}>
          <ColumnField
            label="Column to predict"
            hint="The others are what it is predicted from; texts become one column for each of their values"
            columns={draft.dataset.columns}
            value={draft.target}
            error={errors.target}
            onChange={(target) => update({ target })}
          />
        </div>
      )}
    </>
  );
}

function UploadBox({ upload }: { upload: ReturnType<typeof useUpload> }) {
  const { view, pause, resume, giveUp } = upload;
  if (view.step === "none") return null;
  if (view.step === "refused") {
    return (
      <div className={styles.upload} role="alert">
        <p className={styles.error}>
          <Plain>{view.name}</Plain>: {view.problem}
        </p>
        <div>
          <Button onClick={giveUp}>Choose another file</Button>
        </div>
      </div>
    );
  }
  const isChecking = view.step === "going" && view.progress.step === "checking";
  const place = view.step === "paused" ? view : view.progress.step === "checking" ? { sent: view.progress.total, total: view.progress.total } : view.progress;
  return (
    <div className={styles.upload}>
      <div className={styles.file}>
        <b>
          <Plain>{view.name}</Plain>
        </b>
        <span className={styles.row}>
          {view.step === "going" && !isChecking && <Button onClick={pause}>Pause</Button>}
          {view.step === "paused" && <Button onClick={resume}>Resume</Button>}
          <Button variant="quiet" onClick={giveUp}>
            Cancel
          </Button>
        </span>
      </div>
      <Progress value={isChecking ? null : place.sent / Math.max(1, place.total)} label={`Upload of ${view.name}`} tone={view.step === "paused" || (view.step === "going" && view.progress.step === "waiting") ? "amber" : "green"} />
      <p className={styles.small} role="status">
        {wordsOf(view, place)}
      </p>
    </div>
  );
}

function wordsOf(view: ReturnType<typeof useUpload>["view"], place: { sent: number; total: number }): string {
  const share = `${bytes(place.sent)} of ${bytes(place.total)}`;
  if (view.step === "paused") return `Paused at ${share}`;
  if (view.step !== "going") return "";
  if (view.progress.step === "checking") return "All bytes are there; the server reads every record";
  if (view.progress.step === "waiting") return `${share}; ${view.progress.why}`;
  if (!view.perSecond) return share;
  return `${share}, ${bytes(view.perSecond)}/s, ${duration((place.total - place.sent) / view.perSecond)} left`;
}

function Chosen({ dataset, onChange }: { dataset: Dataset; onChange: () => void }) {
  return (
    <>
      <div className={styles.file}>
        <span>
          <b>
            <Plain>{dataset.name}</Plain>
          </b>{" "}
          {plural(dataset.rows, "row")}, {plural(dataset.columns.length, "column")}, {bytes(dataset.bytes)}
        </span>
        <Button onClick={onChange}>Change data</Button>
      </div>
      {dataset.warnings.length > 0 && (
        <ul className={styles.findings} aria-label="Warnings about the data">
          {dataset.warnings.map((words) => (
            <li key={words} className={styles.problem}>
              {sentence(words)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** A dataset of an earlier upload: the server knows its first rows. */
function Kept({ dataset }: { dataset: Dataset }) {
  const { data } = useQuery(previewQuery(dataset.id));
  return <FirstRows start={data ?? { columns: dataset.columns, rows: [] }} />;
}
