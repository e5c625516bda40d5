import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { ApiError } from "@/shared/api/errors";
import { count } from "@/shared/format/numbers";
import { HardwareFacts } from "@/shared/machines/HardwareFacts";
import { isolationOf, type Machine } from "@/shared/machines/hardware";
import { MachineStatePill } from "@/shared/machines/MachineState";
import { ButtonLink, Card, cx, EmptyState, Facts, PageHeader, Plain, QueryView, Time } from "@/shared/ui";
import styles from "./Network.module.css";
import { nodeQuery } from "./queries";

const CRUMB = <Link to="/app/network">Network</Link>;

/** A machine as everybody may see it. */
export function NodePage() {
  const { agentId = "" } = useParams();
  const node = useQuery(nodeQuery(agentId));
  if (node.error instanceof ApiError && node.error.status === 404) {
    return (
      <>
        <PageHeader title="No such machine" crumb={CRUMB} />
        <EmptyState title="There is no machine of this name" action={<ButtonLink to="/app/network">See the network</ButtonLink>}>
          <p>
            <b>
              <Plain max={64}>{agentId}</Plain>
            </b>{" "}
            is not known here, or its provider removed it.
          </p>
        </EmptyState>
      </>
    );
  }
  return (
    <QueryView query={node} what="this machine">
      {(machine) => <Found machine={machine} />}
    </QueryView>
  );
}

const NOW: Record<Machine["status"], string> = {
  IDLE: "Online and without work: it can start at once.",
  BUSY: "Online and training. It takes the next piece when it is done.",
  OFFLINE: "Not heard of lately. What it was working on has gone to another machine.",
};

function Found({ machine }: { machine: Machine }) {
  const isOwn = machine.hostname !== null;
  const isolation = isolationOf(machine);
  return (
    <>
      <PageHeader
        crumb={CRUMB}
        title={<Plain>{machine.id}</Plain>}
        name={machine.id}
        meta={
          <>
            <MachineStatePill state={machine.status} />
            <span>{NOW[machine.status]}</span>
          </>
        }
        actions={isOwn && <ButtonLink to={`/app/machines/${encodeURIComponent(machine.id)}`}>Manage your machine</ButtonLink>}
      />
      <div className={styles.overview}>
        <Card title="Hardware">
          <HardwareFacts machine={machine} />
        </Card>
        <Card title="Record">
          <Facts
            items={[
              ["Tasks completed", count(machine.tasks_completed)],
              ["Last heard", <Time key="seen" at={machine.last_seen_at} />],
              ["Registered", <Time key="since" at={machine.registered_at} />],
              ["Provider", isOwn ? "you" : "not shown"],
            ]}
          />
          <p className={cx(styles.isolation, !isolation.isWalled && styles.bare)}>{isolation.explained}</p>
        </Card>
      </div>
    </>
  );
}
