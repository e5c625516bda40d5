import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { bytes } from "@/shared/format/numbers";
import { plainName } from "@/shared/format/text";
import { Card, CodeBlock, QueryView } from "@/shared/ui";
import styles from "./Job.module.css";
import { logsQuery, type Job, type Subtask } from "./queries";
import { subtaskName } from "./states";

/** What the scripts printed, one subtask at a time; the one that went wrong or runs comes first. */
export function LogsCard({ job }: { job: Job }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const begun = job.subtasks.filter((subtask) => subtask.attempts.length > 0);
  const subtask = begun.find((one) => one.id === chosen) ?? mostTelling(begun);
  if (!subtask) return null;
  return (
    <Card
      title="Log"
      actions={
        <label className={styles.picker}>
          <span className="visually-hidden">Show the log of</span>
          <select value={subtask.id} onChange={(event) => setChosen(Number(event.target.value))}>
            {begun.map((one) => (
              <option key={one.id} value={one.id}>
                {subtaskName(one).toLowerCase()}, {plainName(one.attempts.at(-1)?.agent_id ?? "")}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <Output jobId={job.id} subtask={subtask} />
    </Card>
  );
}

const isOver = (subtask: Subtask): boolean => ["COMPLETED", "FAILED", "CANCELLED"].includes(subtask.status);

function mostTelling(subtasks: Subtask[]): Subtask | undefined {
  const failed = subtasks.find((one) => one.status === "FAILED" || (one.status === "PENDING" && one.attempts.length > 0));
  return failed ?? subtasks.find((one) => one.status === "RUNNING") ?? subtasks[0];
}

function Output({ jobId, subtask }: { jobId: number; subtask: Subtask }) {
  const query = useQuery(logsQuery(jobId, subtask.id, isOver(subtask)));
  return (
    <QueryView query={query} what="the log">
      {(logs) =>
        logs.items.length === 0 ? (
          <p className={styles.sub}>Nothing was printed yet.</p>
        ) : (
          <div className={styles.logs}>
            {logs.items.map((log) => (
              <div key={log.attempt}>
                {(logs.items.length > 1 || log.attempt > 1) && (
                  <h3>
                    Attempt {log.attempt}, <bdi>{plainName(log.agent_id)}</bdi>
                  </h3>
                )}
                <CodeBlock text={log.text} label={`Output of ${subtaskName(subtask).toLowerCase()}, attempt ${log.attempt}`} maxHeight="22rem" />
                <p className={styles.size}>{bytes(log.total_bytes)} printed</p>
              </div>
            ))}
          </div>
        )
      }
    </QueryView>
  );
}
