import { useState } from "react";
import { Link } from "react-router";
import { count } from "@/shared/format/numbers";
import { hardwareLine, isolationOf, type Machine } from "@/shared/machines/hardware";
import { MachineStatePill } from "@/shared/machines/MachineState";
import { Button, cx, Plain, Table, Time, type Column } from "@/shared/ui";
import styles from "./Machines.module.css";
import { phaseWords, pieceWords } from "./outcomes";
import type { Task } from "./queries";
import { RemoveMachine } from "./RemoveMachine";

const ORDER: Record<Machine["status"], number> = { BUSY: 0, IDLE: 1, OFFLINE: 2 };

export function MachinesTable({ machines, tasks }: { machines: readonly Machine[]; tasks: readonly Task[] }) {
  const [removing, setRemoving] = useState<string | null>(null);
  const current = new Map(tasks.filter((task) => task.status === "RUNNING").map((task) => [task.agent_id, task]));
  const rows = machines.toSorted((a, b) => ORDER[a.status] - ORDER[b.status] || a.id.localeCompare(b.id));
  return (
    <>
      <Table caption="Your machines" columns={columnsOf(current, setRemoving)} rows={rows} rowKey={(machine) => machine.id} />
      <RemoveMachine machine={machines.find((machine) => machine.id === removing)} onClose={() => setRemoving(null)} />
    </>
  );
}

const columnsOf = (current: ReadonlyMap<string, Task>, onRemove: (id: string) => void): Column<Machine>[] => [
  {
    key: "name",
    header: "Machine",
    isTitle: true,
    cell: (machine) => (
      <Link to={`/app/machines/${encodeURIComponent(machine.id)}`}>
        <Plain>{machine.id}</Plain>
      </Link>
    ),
  },
  { key: "state", header: "State", cell: (machine) => <MachineStatePill state={machine.status} /> },
  { key: "now", header: "Works on", cell: (machine) => <Current machine={machine} task={current.get(machine.id)} /> },
  {
    key: "hardware",
    header: "Hardware",
    cell: (machine) => (
      <>
        <Plain>{hardwareLine(machine)}</Plain>
        <small className={cx(styles.second, !isolationOf(machine).isWalled && styles.bare)} title={isolationOf(machine).explained}>
          {isolationOf(machine).name}
        </small>
      </>
    ),
  },
  { key: "seen", header: "Last heard", cell: (machine) => <Time at={machine.last_seen_at} /> },
  { key: "done", header: "Tasks", align: "right", cell: (machine) => count(machine.tasks_completed) },
  {
    key: "remove",
    header: "Action",
    align: "right",
    cell: (machine) => (
      <Button variant="quiet" className={styles.inCell} onClick={() => onRemove(machine.id)} aria-label={`Remove ${machine.id}`}>
        Remove
      </Button>
    ),
  },
];

function Current({ machine, task }: { machine: Machine; task: Task | undefined }) {
  if (machine.status === "OFFLINE") return "–";
  if (!task) return <span className={styles.faint}>{machine.status === "BUSY" ? "a task" : "nothing, asks for work"}</span>;
  return (
    <>
      Job {task.job_id}: {phaseWords(task).toLowerCase()}
      <small className={styles.second}>{pieceWords(task)}</small>
    </>
  );
}
