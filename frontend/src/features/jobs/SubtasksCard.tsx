import { useSearchParams } from "react-router";
import { count, metric, plural } from "@/shared/format/numbers";
import { duration } from "@/shared/format/times";
import { sentence } from "@/shared/format/text";
import { Card, Plain, Progress, Table, type Column } from "@/shared/ui";
import styles from "./Job.module.css";
import type { Job, Subtask } from "./queries";
import { SubtaskPill } from "./states";

const MOST_REASON = 240;

export function SubtasksCard({ job, round }: { job: Job; round: number }) {
  const rows = job.subtasks;
  return (
    <Card title={`Round ${round}`} note={plural(rows.length, "subtask")} actions={job.current_round > 1 && <RoundPicker job={job} round={round} />}>
      {rows.length === 0 ? (
        <p className={styles.sub}>The rows are still being dealt to chunks.</p>
      ) : (
        <Table caption={`Subtasks of round ${round}`} columns={COLUMNS} rows={rows} rowKey={(row) => row.id} />
      )}
    </Card>
  );
}

const COLUMNS: Column<Subtask>[] = [
  { key: "chunk", header: "Chunk", isTitle: true, cell: (row) => (row.kind === "train" ? `Chunk ${row.chunk}` : `${sentence(row.kind)} ${row.chunk}`) },
  { key: "agent", header: "Agent", cell: (row) => <Agent subtask={row} /> },
  { key: "state", header: "State", cell: (row) => <State subtask={row} /> },
  { key: "epoch", header: "Epoch", cell: (row) => <Epoch subtask={row} /> },
  { key: "rows", header: "Rows", align: "right", cell: (row) => count(row.rows) },
  { key: "loss", header: "Loss", align: "right", cell: (row) => metric(row.loss) },
  { key: "accuracy", header: "Accuracy", align: "right", cell: (row) => metric(row.accuracy) },
  { key: "time", header: "Time", align: "right", cell: (row) => duration(row.duration_s) },
];

function Agent({ subtask }: { subtask: Subtask }) {
  if (!subtask.agent_id) return "–";
  return (
    <>
      <Plain max={40}>{subtask.agent_id}</Plain>
      {subtask.attempt > 1 && <span className={styles.attempt}> attempt {subtask.attempt}</span>}
    </>
  );
}

function State({ subtask }: { subtask: Subtask }) {
  const reason = subtask.reason ?? (subtask.status === "PENDING" ? subtask.attempts.at(-1)?.reason : null);
  const lines = reason?.trim().split("\n") ?? [];
  const words = lines.length > 1 ? `${lines[0]} … ${lines.at(-1)}` : lines[0];
  return (
    <div className={styles.state}>
      <SubtaskPill subtask={subtask} />
      {words && (
        <p className={styles.reason}>
          <Plain max={MOST_REASON}>{words}</Plain>
        </p>
      )}
    </div>
  );
}

function Epoch({ subtask }: { subtask: Subtask }) {
  if (subtask.epoch === null && subtask.progress === null) return "–";
  const isDone = subtask.status === "COMPLETED" || subtask.status === "VERIFYING";
  const share = isDone ? 1 : subtask.progress;
  return (
    <span className={styles.epoch}>
      {subtask.epoch !== null && <span>{subtask.epoch}</span>}
      {share !== null && <Progress value={share} label={`Chunk ${subtask.chunk}`} tone={isDone ? "green" : subtask.status === "RUNNING" ? "blue" : "grey"} />}
    </span>
  );
}

/** The round whose subtasks are shown, in the address: `?round=3`. */
function RoundPicker({ job, round }: { job: Job; round: number }) {
  const [, setParams] = useSearchParams();
  const show = (next: number) => setParams(next === job.current_round ? {} : { round: String(next) }, { replace: true, preventScrollReset: true });
  return (
    <label className={styles.picker}>
      <span className="visually-hidden">Show round</span>
      <select value={round} onChange={(event) => show(Number(event.target.value))}>
        {Array.from({ length: job.current_round }, (_, index) => job.current_round - index).map((number) => (
          <option key={number} value={number}>
            Round {number}
            {number === job.current_round ? " (latest)" : ""}
          </option>
        ))}
      </select>
    </label>
  );
}
