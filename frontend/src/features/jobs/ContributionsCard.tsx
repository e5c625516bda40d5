import { useQuery } from "@tanstack/react-query";
import { count, percent } from "@/shared/format/numbers";
import { duration } from "@/shared/format/times";
import type { Body } from "@/shared/api/types";
import { Card, Plain, Progress, Table, type Column } from "@/shared/ui";
import styles from "./Job.module.css";
import { cardQuery, isInStep, type Job } from "./queries";

type Share = Body<"CardShare">;

const COLUMNS: Column<Share>[] = [
  { key: "agent", header: "Agent", isTitle: true, cell: (row) => <Plain max={40}>{row.agent_id}</Plain> },
  {
    key: "share",
    header: "Share of the rows",
    cell: (row) => (
      <span className={styles.share}>
        <Progress value={row.share} label={`Share of ${row.agent_id}`} />
        {percent(row.share)}
      </span>
    ),
  },
  { key: "updates", header: "Updates", align: "right", cell: (row) => count(row.updates) },
  { key: "time", header: "Trained for", align: "right", cell: (row) => duration(row.train_s) },
];
const RANKS = COLUMNS.map((column) => (column.key === "updates" ? { ...column, header: "Ranks" } : column));

/** Whose machines trained on how much of it, over all rounds. */
export function ContributionsCard({ job }: { job: Job }) {
  const { data } = useQuery({ ...cardQuery(job.id, job.completed_subtasks, job.status), enabled: job.completed_subtasks > 0 });
  if (!data || data.agents.length === 0) return null;
  return (
    <Card title="Contributions" note={isInStep(job) ? "ranks that were paid" : "accepted updates of all rounds"}>
      <Table caption="What each agent contributed" columns={isInStep(job) ? RANKS : COLUMNS} rows={data.agents.toSorted((a, b) => b.share - a.share)} rowKey={(row) => row.agent_id} />
    </Card>
  );
}
