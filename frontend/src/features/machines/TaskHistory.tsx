import type { UseQueryResult } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { secondsBetween, duration } from "@/shared/format/times";
import { count } from "@/shared/format/numbers";
import { Button, ButtonLink, Card, Pill, Plain, QueryView, Table, Time, useNow, type Column } from "@/shared/ui";
import styles from "./Machines.module.css";
import { outcomeOf, pieceWords, tally } from "./outcomes";
import type { Task } from "./queries";
import { Reason } from "./Reason";

const PAGE = 15;

interface TaskHistoryProps {
  tasks: UseQueryResult<Task[]>;
  /** The machine whose tasks they are, which then needs no column. */
  agentId?: string;
}

/** What machines worked on and how it ended. `?job=12` in the address leaves one job's tasks. */
export function TaskHistory({ tasks, agentId }: TaskHistoryProps) {
  const [params] = useSearchParams();
  const job = Number(params.get("job")) || null;
  const isThere = tasks.data !== undefined;
  // Whoever comes from a transfer wants to see that job's tasks, which stand far down and arrive late.
  useEffect(() => {
    if (job && isThere) document.getElementById("tasks")?.scrollIntoView({ block: "center" });
  }, [job, isThere]);
  const title = job ? `Tasks of job ${job}` : agentId ? "Tasks" : "Task history";
  return (
    <Card
      className={styles.history}
      title={<span id="tasks">{title}</span>}
      note={tasks.data && tasks.data.length > 0 && tallyWords(tasks.data, job)}
      actions={job && <ButtonLink to={{ search: "" }}>All tasks</ButtonLink>}
    >
      <QueryView query={tasks} what="the task history">
        {(all) => <Rows tasks={job ? all.filter((task) => task.job_id === job) : all} agentId={agentId} />}
      </QueryView>
    </Card>
  );
}

function Rows({ tasks, agentId }: { tasks: Task[]; agentId: string | undefined }) {
  const [shown, setShown] = useState(PAGE);
  if (tasks.length === 0) return <p className={styles.faint}>No task yet. Work arrives by itself while a machine is online and a job waits.</p>;
  return (
    <>
      <Table
        caption="Tasks, newest first"
        columns={agentId ? COLUMNS.filter((column) => column.key !== "machine") : COLUMNS}
        rows={tasks.slice(0, shown)}
        rowKey={(task) => `${task.task_id}-${task.attempt}`}
      />
      {tasks.length > shown && (
        <div className={styles.below}>
          <Button onClick={() => setShown(shown + 50)}>Show older</Button>
          <span>
            {count(shown)} of {count(tasks.length)}
          </span>
        </div>
      )}
    </>
  );
}

const COLUMNS: Column<Task>[] = [
  {
    key: "task",
    header: "Task",
    isTitle: true,
    cell: (task) => (
      <>
        Job {task.job_id}
        <small className={styles.second}>{pieceWords(task)}</small>
      </>
    ),
  },
  {
    key: "machine",
    header: "Machine",
    cell: (task) => (
      <Link to={`/app/machines/${encodeURIComponent(task.agent_id)}`}>
        <Plain>{task.agent_id}</Plain>
      </Link>
    ),
  },
  { key: "outcome", header: "Outcome", width: "40%", cell: (task) => <OutcomeCell task={task} /> },
  { key: "started", header: "Started", cell: (task) => <Time at={task.started_at} /> },
  { key: "took", header: "Took", align: "right", cell: (task) => <Took task={task} /> },
  { key: "paid", header: "Paid", align: "right", cell: (task) => (task.paid > 0 ? <b className={styles.plus}>+{count(task.paid)}</b> : "–") },
];

function OutcomeCell({ task }: { task: Task }) {
  const { word, tone, mark } = outcomeOf(task);
  return (
    <>
      <Pill tone={tone} mark={mark}>
        {word}
      </Pill>
      {task.reason && <Reason text={task.reason} />}
    </>
  );
}

function Took({ task }: { task: Task }) {
  const now = useNow();
  return <>{duration(secondsBetween(task.started_at, task.finished_at ?? now))}</>;
}

function tallyWords(tasks: readonly Task[], job: number | null): string {
  const { accepted, failed } = tally(job ? tasks.filter((task) => task.job_id === job) : tasks);
  const known = tasks.length >= 200 ? "of the latest 200: " : "";
  return `${known}${count(accepted)} accepted, ${count(failed)} not`;
}
