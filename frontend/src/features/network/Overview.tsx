import { Link } from "react-router";
import { count, plural } from "@/shared/format/numbers";
import { STATES } from "@/shared/machines/MachineState";
import { Card, Pill } from "@/shared/ui";
import type { MachineState } from "@/shared/machines/hardware";
import styles from "./Network.module.css";
import type { Summary } from "./words";

const MOST_MARKS = 240;

/** How many machines are in which state: every machine is a mark, as long as there is room for each. */
export function MachineCounts({ summary: { agents, cores } }: { summary: Summary }) {
  const parts: [MachineState, number][] = [
    ["BUSY", agents.busy],
    ["IDLE", agents.idle],
    ["OFFLINE", agents.offline],
  ];
  return (
    <Card title="Machines online">
      <p className={styles.big}>
        <b>{count(agents.online)}</b>
        <span>
          of {count(agents.total)}, with {plural(cores, "core")}
        </span>
      </p>
      <Wall parts={parts} />
      <ul className={styles.legend}>
        {parts.map(([state, number]) => (
          <li key={state}>
            <Link to={{ search: `?state=${state.toLowerCase()}` }} replace preventScrollReset>
              <Pill tone={STATES[state].tone} mark={STATES[state].mark}>
                {STATES[state].word}
              </Pill>
              <b>{count(number)}</b>
            </Link>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Wall({ parts }: { parts: [MachineState, number][] }) {
  const total = parts.reduce((sum, [, number]) => sum + number, 0);
  if (total === 0) return null;
  if (total > MOST_MARKS) {
    return (
      <div className={styles.shares} aria-hidden="true">
        {parts.map(([state, number]) => number > 0 && <i key={state} data-state={state} style={{ flexGrow: number }} />)}
      </div>
    );
  }
  return (
    <div className={styles.wall} data-few={total <= 36} aria-hidden="true">
      {parts.flatMap(([state, number]) => Array.from({ length: number }, (_, index) => <i key={`${state}${index}`} data-state={state} />))}
    </div>
  );
}

/** Everybody's jobs, as counts alone. */
export function JobCounts({ summary: { jobs } }: { summary: Summary }) {
  const rows = [
    ["queued", "Queued", jobs.queued, "wait for a machine"],
    ["running", "Running", jobs.running, "at least one machine is at it"],
    ["completed", "Completed", jobs.completed, "a model was delivered"],
    ["failed", "Failed", jobs.failed, "unused credits went back"],
  ] as const;
  const most = Math.max(1, ...rows.map(([, , number]) => number));
  return (
    <Card title="Jobs of everybody" note={`${count(jobs.total)} in all`}>
      <dl className={styles.jobs}>
        {rows.map(([key, word, number, note]) => (
          <div key={key} data-kind={key}>
            <dt>
              {word}
              <small>{note}</small>
            </dt>
            <dd>
              <b>{count(number)}</b>
              <i style={{ width: `${(100 * number) / most}%` }} aria-hidden="true" />
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
