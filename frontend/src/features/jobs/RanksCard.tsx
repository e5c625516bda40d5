import { useMemo } from "react";
import { count, metric, plural } from "@/shared/format/numbers";
import { secondsBetween } from "@/shared/format/times";
import { Card, Plain, Table, Time, useNow, type Column } from "@/shared/ui";
import styles from "./Job.module.css";
import { hasEnded, type Job, type Rank } from "./queries";
import { inBrief, isAtWork, RankPill } from "./states";

type Gang = NonNullable<Job["gang"]>;
interface Row extends Rank {
  /** Why it ended badly, where nothing else on the page says so. */
  reason: string | null;
}

/** Ranks are heard of every 2 s. */
const SILENT_S = 15;
const MOST_REASON = 240;

/** The latest try of a synchronous training, rank by rank. */
export function RanksCard({ job }: { job: Job }) {
  const rows = useMemo(() => rowsOf(job), [job]);
  const stop = stopInWords(job);
  return (
    <Card title="Ranks" note={job.gang ? gangInWords(job.gang) : undefined}>
      {stop && (
        <p className={styles.stopped}>
          <Plain max={400}>{inBrief(stop)}</Plain>
        </p>
      )}
      {rows.length === 0 ? (
        <p className={styles.sub}>{nothingYet(job)}</p>
      ) : (
        <Table caption="Ranks of the latest try" columns={rows.some(isAtWork) ? LIVE_COLUMNS : COLUMNS} rows={rows} rowKey={(row) => row.rank} />
      )}
    </Card>
  );
}

const COLUMNS: Column<Row>[] = [
  { key: "rank", header: "Rank", isTitle: true, cell: (row) => `Rank ${row.rank}` },
  { key: "agent", header: "Agent", cell: (row) => <Plain max={40}>{row.agent_id}</Plain> },
  { key: "state", header: "State", cell: (row) => <State row={row} /> },
  { key: "epoch", header: "Epoch", align: "right", cell: (row) => whole(row.epoch) },
  { key: "step", header: "Step", align: "right", cell: (row) => whole(row.step) },
  { key: "loss", header: "Loss", align: "right", cell: (row) => metric(row.loss) },
  { key: "speed", header: "Samples/s", align: "right", cell: (row) => metric(row.samples_per_s) },
];
const LIVE_COLUMNS: Column<Row>[] = [...COLUMNS, { key: "heard", header: "Last heard", align: "right", cell: (row) => (isAtWork(row) ? <Heard at={row.seen_at} /> : "–") }];

const whole = (value: number | null): string => (value === null ? "–" : count(value));

function State({ row }: { row: Row }) {
  return (
    <div className={styles.state}>
      <RankPill rank={row} />
      {row.reason && (
        <p className={styles.reason}>
          <Plain max={MOST_REASON}>{inBrief(row.reason)}</Plain>
        </p>
      )}
    </div>
  );
}

function Heard({ at }: { at: string | null }) {
  const now = useNow();
  if (at === null || secondsBetween(at, now) <= SILENT_S) return <Time at={at} />;
  return (
    <span className={styles.silent}>
      silent, <Time at={at} />
    </span>
  );
}

/** "try 2, resumed from a checkpoint, 3 checkpoints sealed" */
function gangInWords(gang: Gang): string {
  const parts = [
    gang.number > 1 && `try ${gang.number}`,
    gang.resumed_from !== null && "resumed from a checkpoint",
    gang.checkpoints > 0 && `${plural(gang.checkpoints, "checkpoint")} sealed`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Why the last try that was stopped was: this one, or the one before it. A job's own failure says it already. */
function stopInWords({ status, gang, events }: Job): string | null {
  if (!gang || status === "FAILED") return null;
  if (gang.reason) return `Try ${gang.number} was stopped: ${gang.reason}`;
  const before = gang.number > 1 ? events.findLast((event) => event.what === "round" && event.new === "BROKEN") : undefined;
  return before ? before.text.replace(/^gang/, "Try") : null;
}

function rowsOf(job: Job): Row[] {
  const said = `${job.gang?.reason} ${job.reason}`;
  return (job.gang?.ranks ?? []).map((rank) => {
    const attempts = job.subtasks.find(({ chunk }) => chunk === rank.rank)?.attempts ?? [];
    const reason = ENDED_BADLY.has(rank.state) ? attempts.findLast((attempt) => attempt.agent_id === rank.agent_id && attempt.status === rank.state)?.reason : null;
    return { ...rank, reason: reason && !said.includes(reason) ? reason : null };
  });
}

const ENDED_BADLY = new Set(["FAILED", "REFUSED", "LOST"]);

function nothingYet(job: Job): string {
  if (hasEnded(job)) return "It never came to a try.";
  return job.status === "PROCESSING" ? "The rows are still being dealt to ranks." : "No try has begun yet: all ranks begin at the same time, once as many slots are free.";
}
