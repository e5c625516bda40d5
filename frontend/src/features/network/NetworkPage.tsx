import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useSearchParams } from "react-router";
import { isSeller, useMe } from "@/shared/api/session";
import { count } from "@/shared/format/numbers";
import { hardwareLine, isolationOf, type Machine } from "@/shared/machines/hardware";
import { MachineStatePill } from "@/shared/machines/MachineState";
import { Button, ButtonLink, Card, cx, EmptyState, PageHeader, Plain, QueryView, Stack, Table, Time, type Column } from "@/shared/ui";
import styles from "./Network.module.css";
import { choicesOf, filterOf, sayNetwork, type Summary } from "./words";
import { networkQuery, summaryQuery } from "./queries";
import { JobCounts, MachineCounts } from "./Overview";

const PAGE = 100;

/** Machines of everybody and counts of jobs, as they are now. */
export function NetworkPage() {
  const summary = useQuery(summaryQuery);
  return (
    <>
      <PageHeader title="Network" meta={summary.data && <span>{sayNetwork(summary.data)}</span>} />
      <QueryView query={summary} what="the network">
        {(data) => (
          <Stack>
            <div className={styles.overview}>
              <MachineCounts summary={data} />
              <JobCounts summary={data} />
            </div>
            {data.agents.total === 0 ? <NoMachines /> : <Machines summary={data} />}
          </Stack>
        )}
      </QueryView>
    </>
  );
}

function NoMachines() {
  const canLend = isSeller(useMe());
  return (
    <EmptyState title="No machine yet" action={canLend && <ButtonLink to="/app/machines?add" variant="primary">Add the first machine</ButtonLink>}>
      <p>Machines stand here as soon as a provider’s worker registers, with what they are made of and whether they are idle, busy or offline.</p>
    </EmptyState>
  );
}

function Machines({ summary }: { summary: Summary }) {
  const [params] = useSearchParams();
  const filter = filterOf(params.get("state"));
  const machines = useQuery(networkQuery(filter));
  return (
    <Card
      title="Machines"
      actions={
        <nav className={styles.filters} aria-label="Machines by state">
          {choicesOf(summary).map((choice) => (
            <Link
              key={choice.param}
              to={{ search: choice.param && `?state=${choice.param}` }}
              replace
              preventScrollReset
              className={cx(choice.filter === filter && styles.on)}
              aria-current={choice.filter === filter ? "true" : undefined}
            >
              {choice.word} <b>{count(choice.number)}</b>
            </Link>
          ))}
        </nav>
      }
    >
      <QueryView query={machines} what="the machines">
        {(list) => <Rows key={filter} machines={list} />}
      </QueryView>
    </Card>
  );
}

function Rows({ machines }: { machines: Machine[] }) {
  const [shown, setShown] = useState(PAGE);
  if (machines.length === 0) return <p className={styles.faint}>No machine is in this state right now.</p>;
  return (
    <>
      <Table caption="Machines by name" columns={COLUMNS} rows={machines.slice(0, shown)} rowKey={(machine) => machine.id} />
      {machines.length > shown && (
        <p className={styles.below}>
          <Button onClick={() => setShown(shown + PAGE)}>Show more</Button>
          <span>
            {count(shown)} of {count(machines.length)}
          </span>
        </p>
      )}
    </>
  );
}

const COLUMNS: Column<Machine>[] = [
  {
    key: "name",
    header: "Machine",
    isTitle: true,
    cell: (machine) => (
      <>
        <Link to={`/app/network/${encodeURIComponent(machine.id)}`}>
          <Plain>{machine.id}</Plain>
        </Link>
        {machine.hostname !== null && <span className={styles.own}>yours</span>}
      </>
    ),
  },
  { key: "state", header: "State", cell: (machine) => <MachineStatePill state={machine.status} /> },
  { key: "hardware", header: "Hardware", cell: (machine) => <Plain>{hardwareLine(machine)}</Plain> },
  {
    key: "isolation",
    header: "Isolation",
    cell: (machine) => (
      <span className={cx(!isolationOf(machine).isWalled && styles.bare)} title={isolationOf(machine).explained}>
        {isolationOf(machine).name}
      </span>
    ),
  },
  { key: "seen", header: "Last heard", cell: (machine) => <Time at={machine.last_seen_at} /> },
  { key: "done", header: "Tasks", align: "right", cell: (machine) => count(machine.tasks_completed) },
];
