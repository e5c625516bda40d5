import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { isSeller, useMe } from "@/shared/api/session";
import { count, plural } from "@/shared/format/numbers";
import type { Machine } from "@/shared/machines/hardware";
import { ButtonLink, Card, EmptyState, Grid, PageHeader, QueryView, Stack, Stat } from "@/shared/ui";
import { AddMachine } from "./AddMachine";
import { EarningsCard, useEarnings } from "./EarningsCard";
import { KeysCard } from "./KeysCard";
import styles from "./Machines.module.css";
import { MachinesTable } from "./MachinesTable";
import { myMachinesQuery, tasksQuery } from "./queries";
import { TaskHistory } from "./TaskHistory";

/** The provider's dashboard. */
export function MachinesPage() {
  const me = useMe();
  if (!isSeller(me)) {
    return (
      <>
        <PageHeader title="Machines" />
        <EmptyState title="Your account buys training" action={<ButtonLink to="/app/network">See the network</ButtonLink>}>
          <p>Only sellers lend machines. Register another account as a seller, or as both, to lend one.</p>
        </EmptyState>
      </>
    );
  }
  return <Dashboard userId={me.id} />;
}

function Dashboard({ userId }: { userId: number }) {
  const machines = useQuery(myMachinesQuery(userId));
  const [params, setParams] = useSearchParams();
  const isAdding = params.has("add");
  const close = () => setParams({}, { replace: true });
  return (
    <>
      <PageHeader
        title="Machines"
        meta={machines.data && machines.data.length > 0 && <span>{summary(machines.data)}</span>}
        actions={
          !isAdding &&
          machines.data?.length !== 0 && (
            <ButtonLink to="?add" variant="primary">
              Add a machine
            </ButtonLink>
          )
        }
      />
      <QueryView query={machines} what="your machines">
        {(list) => (
          <Stack>
            {isAdding && <AddMachine machines={list} onClose={close} />}
            {list.length === 0 ? !isAdding && <Welcome /> : <Overview userId={userId} machines={list} />}
            {list.length === 0 && <KeysCard isHiddenWhenEmpty />}
          </Stack>
        )}
      </QueryView>
    </>
  );
}

function Overview({ userId, machines }: { userId: number; machines: Machine[] }) {
  const tasks = useQuery(tasksQuery(userId));
  const earnings = useEarnings(userId);
  const online = machines.filter((machine) => machine.status !== "OFFLINE");
  const busy = machines.filter((machine) => machine.status === "BUSY");
  const done = machines.reduce((sum, machine) => sum + machine.tasks_completed, 0);
  return (
    <>
      <Grid min="150px">
        <Stat label="Online" value={count(online.length)} note={`of ${plural(machines.length, "machine")}`} />
        <Stat label="Working now" value={count(busy.length)} note={online.length > busy.length ? `${count(online.length - busy.length)} waiting for work` : "none waits for work"} />
        <Stat label="Tasks completed" value={count(done)} note="accepted by the server" />
        <Stat label="Earned" value={earnings.data ? count(earnings.data.total) : "–"} note={earnings.data ? `credits; ${count(earnings.data.lastDay)} in the last 24 hours` : "credits"} />
      </Grid>
      <Card title="Your machines" note="seen by you; others see neither host names nor what they work on">
        <MachinesTable machines={machines} tasks={tasks.data ?? []} />
      </Card>
      <div className={styles.pair}>
        <EarningsCard earnings={earnings} />
        <KeysCard />
      </div>
      <TaskHistory tasks={tasks} />
    </>
  );
}

function Welcome() {
  return (
    <EmptyState
      title="Lend your first machine"
      action={
        <>
          <ButtonLink to="?add" variant="primary">
            Add a machine
          </ButtonLink>
          <ButtonLink to="/app/guide/providers">Read the provider guide</ButtonLink>
        </>
      }
    >
      <p>A machine that would otherwise idle can train other people’s models, and earns credits for every piece of work the server accepts.</p>
      <ol className={styles.steps}>
        <li>Make a key here. It names the machines that belong to you.</li>
        <li>Run one command on the machine. It installs the worker into a folder of its own and starts it.</li>
        <li>The machine appears on this page and asks for work. It only ever opens connections to the server.</li>
      </ol>
      <p>Scripts run in a Docker container without network and with limited memory and cores.</p>
    </EmptyState>
  );
}

function summary(machines: readonly Machine[]): string {
  const of = (status: Machine["status"]) => machines.filter((machine) => machine.status === status).length;
  const parts = [[of("BUSY"), "busy"], [of("IDLE"), "idle"], [of("OFFLINE"), "offline"]] as const;
  return parts
    .filter(([number]) => number > 0)
    .map(([number, word]) => `${count(number)} ${word}`)
    .join(", ");
}
