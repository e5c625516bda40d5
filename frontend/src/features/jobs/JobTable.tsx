import { memo } from "react";
import { Link } from "react-router";
import { count, plural } from "@/shared/format/numbers";
import { duration, secondsBetween } from "@/shared/format/times";
import { Plain, Progress, Table, Time, type Column } from "@/shared/ui";
import styles from "./Job.module.css";
import { shareOf } from "./progress";
import { hasEnded, isInStep, type JobSummary } from "./queries";
import { JobPill } from "./states";

const COLUMNS: Column<JobSummary>[] = [
  {
    key: "title",
    header: "Job",
    isTitle: true,
    width: "34%",
    cell: (job) => (
      <>
        <Link to={`/app/jobs/${job.id}`} className={styles.title}>
          <Plain max={90}>{job.title}</Plain>
        </Link>
        <span className={styles.jobSub}>
          {job.id} · <Plain max={50}>{job.dataset_name}</Plain>
        </span>
      </>
    ),
  },
  { key: "state", header: "State", cell: (job) => <JobPill job={job} isStill /> },
  { key: "progress", header: "Progress", cell: (job) => <JobProgress job={job} /> },
  { key: "price", header: "Credits", align: "right", cell: (job) => count(job.price) },
  { key: "created", header: "Created", align: "right", cell: (job) => <Time at={job.created_at} /> },
  { key: "took", header: "Took", align: "right", cell: (job) => (job.finished_at ? duration(secondsBetween(job.created_at, job.finished_at)) : "–") },
];

/** The list changes every 2 s at most; a filter's keystroke must not draw 200 rows that stayed. */
export const JobTable = memo(function JobTable({ jobs }: { jobs: JobSummary[] }) {
  return <Table caption="Your jobs, newest first" columns={COLUMNS} rows={jobs} rowKey={(job) => job.id} />;
});

function JobProgress({ job }: { job: JobSummary }) {
  const tone = job.status === "FAILED" ? "red" : job.status === "CANCELLED" ? "grey" : "green";
  return (
    <div className={styles.progress}>
      <Progress value={shareOf(job)} label={`Progress of job ${job.id}`} tone={tone} />
      <span>{progressInWords(job)}</span>
    </div>
  );
}

function progressInWords(job: JobSummary): string {
  if (hasEnded(job)) return `${job.completed_subtasks} of ${job.total_subtasks} ${isInStep(job) ? "ranks" : "updates"}`;
  return isInStep(job) ? `in step, ${plural(job.chunks, "rank")}` : `round ${job.current_round} of ${job.rounds}`;
}
