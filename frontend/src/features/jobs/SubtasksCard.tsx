import { useSearchParams } from "react-router";
import { count, metric, plural } from "@/shared/format/numbers";
import { duration } from "@/shared/format/times";
import { Card, Plain, Progress, Table, Time, type Column } from "@/shared/ui";
import styles from "./Job.module.css";
import { hasEnded, type Job, type Subtask } from "./queries";
import { atWork, inBrief, SubtaskPill, subtaskName } from "./states";

type Attempt = Subtask["attempts"][number];

const MOST_REASON = 240;

export function SubtasksCard({ job, round }: { job: Job; round: number }) {
  const rows = job.subtasks;
  return (
    <Card title={`Round ${round}`} note={<Note job={job} round={round} />} actions={job.current_round > 1 && <RoundPicker job={job} round={round} />}>
      {rows.length === 0 ? (
        <p className={styles.sub}>The rows are still being dealt to chunks.</p>
      ) : (
        <Table caption={`Subtasks of round ${round}`} columns={COLUMNS} rows={rows} rowKey={(row) => row.id} />
      )}
    </Card>
  );
}

const COLUMNS: Column<Subtask>[] = [
  { key: "chunk", header: "Chunk", isTitle: true, cell: subtaskName },
  { key: "agent", header: "Agent", cell: (row) => <Agent subtask={row} /> },
  { key: "state", header: "State", cell: (row) => <State subtask={row} /> },
  { key: "epoch", header: "Epoch", cell: (row) => <Epochs subtask={row} /> },
  { key: "rows", header: "Rows", align: "right", cell: (row) => count(row.rows) },
  { key: "loss", header: "Loss", align: "right", cell: (row) => metric(row.loss) },
  { key: "accuracy", header: "Accuracy", align: "right", cell: (row) => metric(row.accuracy) },
  { key: "time", header: "Time", align: "right", cell: (row) => duration(row.duration_s) },
];

/** How many subtasks there are, and until when an open round waits for them. */
function Note({ job, round }: { job: Job; round: number }) {
  const shown = job.round_list.find((one) => one.round === round);
  return (
    <>
      {plural(job.subtasks.length, "subtask")}
      {shown?.deadline_at && !shown.closed_at && !hasEnded(job) && (
        <>
          , deadline <Time at={shown.deadline_at} />
        </>
      )}
    </>
  );
}

/** Whoever is at it; with a second machine beside the first, both. Whoever was slower with the same chunk is named when it is done. */
function Agent({ subtask }: { subtask: Subtask }) {
  const beside = atWork(subtask);
  if (beside.length > 1) {
    return (
      <ul className={styles.beside} aria-label={`Attempts at ${subtaskName(subtask).toLowerCase()} beside each other`}>
        {beside.map((attempt) => (
          <li key={attempt.attempt}>
            <Plain max={40}>{attempt.agent_id}</Plain>
            <span className={styles.attempt}> attempt {attempt.attempt}</span>
          </li>
        ))}
      </ul>
    );
  }
  if (!subtask.agent_id) return "–";
  const done = subtask.attempts.find(({ status }) => status === "ACCEPTED");
  const slower = done ? subtask.attempts.filter(({ status }) => status === "CANCELLED") : [];
  const number = done?.attempt ?? subtask.attempt;
  return (
    <>
      <Plain max={40}>{subtask.agent_id}</Plain>
      {number > 1 && <span className={styles.attempt}> attempt {number}</span>}
      {slower.map((attempt) => (
        <span key={attempt.attempt} className={styles.slower}>
          faster than <Plain max={40}>{attempt.agent_id}</Plain>
        </span>
      ))}
    </>
  );
}

function State({ subtask }: { subtask: Subtask }) {
  const reason = subtask.reason ?? (subtask.status === "PENDING" ? subtask.attempts.at(-1)?.reason : null);
  const words = reason && inBrief(reason);
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

function Epochs({ subtask }: { subtask: Subtask }) {
  const beside = atWork(subtask);
  const name = subtaskName(subtask);
  if (beside.length < 2) return <Epoch of={subtask} label={name} />;
  return (
    <div className={styles.beside}>
      {beside.map((attempt) => (
        <Epoch key={attempt.attempt} of={attempt} label={`${name}, attempt ${attempt.attempt}`} />
      ))}
    </div>
  );
}

function Epoch({ of, label }: { of: Subtask | Attempt; label: string }) {
  if (of.epoch === null && of.progress === null) return "–";
  const isDone = of.status === "COMPLETED" || of.status === "VERIFYING";
  const share = isDone ? 1 : of.progress;
  return (
    <span className={styles.epoch}>
      {of.epoch !== null && <span>{of.epoch}</span>}
      {share !== null && <Progress value={share} label={label} tone={isDone ? "green" : of.status === "RUNNING" ? "blue" : "grey"} />}
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
