import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { useMe } from "@/shared/api/session";
import { count } from "@/shared/format/numbers";
import { duration, exact, parseTime, secondsBetween } from "@/shared/format/times";
import { HardwareFacts } from "@/shared/machines/HardwareFacts";
import { isolationOf, type Machine } from "@/shared/machines/hardware";
import { MachineStatePill } from "@/shared/machines/MachineState";
import { Button, ButtonLink, Card, cx, EmptyState, Facts, Grid, PageHeader, Plain, QueryView, Stack, Stat, Time, useNow } from "@/shared/ui";
import { MachineHealth } from "./MachineHealth";
import styles from "./Machines.module.css";
import { phaseWords, pieceWords, tally } from "./outcomes";
import { myMachinesQuery, tasksQuery, type Task } from "./queries";
import { RemoveMachine } from "./RemoveMachine";
import { TaskHistory } from "./TaskHistory";

const CRUMB = <Link to="/app/machines">Machines</Link>;

/** One machine of one's own. */
export function MachinePage() {
  const { agentId = "" } = useParams();
  const machines = useQuery(myMachinesQuery(useMe().id));
  return (
    <QueryView query={machines} what="this machine">
      {(list) => {
        const machine = list.find((one) => one.id === agentId);
        return machine ? <Found machine={machine} /> : <Missing agentId={agentId} />;
      }}
    </QueryView>
  );
}

function Missing({ agentId }: { agentId: string }) {
  return (
    <>
      <PageHeader title="No such machine" crumb={CRUMB} />
      <EmptyState title="You have no machine of this name" action={<ButtonLink to="/app/machines">Your machines</ButtonLink>}>
        <p>
          <b>
            <Plain max={64}>{agentId}</Plain>
          </b>{" "}
          was removed, or it is another provider’s. The <Link to={`/app/network/${encodeURIComponent(agentId)}`}>network</Link> shows what everybody may see of it.
        </p>
      </EmptyState>
    </>
  );
}

function Found({ machine }: { machine: Machine }) {
  const all = useQuery(tasksQuery(useMe().id));
  const [isRemoving, setIsRemoving] = useState(false);
  const navigate = useNavigate();
  const own = useMemo(() => all.data?.filter((task) => task.agent_id === machine.id), [all.data, machine.id]);
  const tasks = { ...all, data: own } as typeof all;
  const current = own?.find((task) => task.status === "RUNNING");
  const { accepted, failed } = tally(own ?? []);
  const paid = (own ?? []).reduce((sum, task) => sum + task.paid, 0);
  return (
    <>
      <PageHeader
        crumb={CRUMB}
        title={<Plain>{machine.id}</Plain>}
        name={machine.id}
        meta={
          <>
            <MachineStatePill state={machine.status} />
            <span>{isolationOf(machine).name}</span>
            <span>
              registered <Time at={machine.registered_at} />
            </span>
          </>
        }
        actions={
          <Button variant="danger" onClick={() => setIsRemoving(true)}>
            Remove
          </Button>
        }
      />
      <Stack>
        <Grid min="150px">
          <Stat label="Tasks completed" value={count(machine.tasks_completed)} note="since it registered" />
          <Stat label="Latest tasks" value={own ? count(own.length) : "–"} note={`${count(accepted)} accepted, ${count(failed)} not`} />
          <Stat label="Earned with them" value={own ? count(paid) : "–"} note="credits" />
        </Grid>
        <div className={styles.pair}>
          <Card title="Now">
            <Heartbeat machine={machine} />
            <Current machine={machine} task={current} />
          </Card>
          <Card title="Hardware">
            <HardwareFacts machine={machine} />
            <p className={cx(styles.isolation, !isolationOf(machine).isWalled && styles.warn)}>{isolationOf(machine).explained}</p>
          </Card>
        </div>
        <MachineHealth machine={machine} />
        <TaskHistory tasks={tasks} agentId={machine.id} />
      </Stack>
      <RemoveMachine machine={isRemoving ? machine : undefined} onClose={() => setIsRemoving(false)} onRemoved={() => void navigate("/app/machines")} />
    </>
  );
}

/** How long the machine has been silent. */
function Heartbeat({ machine }: { machine: Machine }) {
  const seconds = Math.max(0, secondsBetween(machine.last_seen_at, useNow()));
  const isOffline = machine.status === "OFFLINE";
  return (
    <div className={styles.heartbeat} data-state={machine.status}>
      <svg viewBox="0 0 120 36" aria-hidden="true">
        <path d={isOffline ? "M2 20h116" : "M2 20h32l5-8 7 20 8-30 8 26 5-8h51"} />
      </svg>
      <div>
        <b title={exact(parseTime(machine.last_seen_at))}>{duration(Math.floor(seconds))}</b>
        <span>since its last sign of life</span>
      </div>
      <p>
        {isOffline
          ? "It is silent, or its key was revoked. Start the worker again on the machine; what it was working on has gone to another one."
          : "It reports every few seconds. When it falls silent it counts as offline, and its work goes to another machine."}
      </p>
    </div>
  );
}

function Current({ machine, task }: { machine: Machine; task: Task | undefined }) {
  const now = useNow();
  if (!task) {
    if (machine.status !== "IDLE") return null;
    return <p className={styles.faint}>{machine.paused ? <Plain max={200}>{`It asks for no work now: ${machine.paused}.`}</Plain> : "It has no task and asks for work by itself."}</p>;
  }
  return (
    <Facts
      items={[
        ["Works on", `Job ${task.job_id}`],
        ["Piece", pieceWords(task)],
        ["Phase", phaseWords(task)],
        ["For", duration(secondsBetween(task.started_at, now))],
      ]}
    />
  );
}
