import { useQuery } from "@tanstack/react-query";
import { bytes, plural } from "@/shared/format/numbers";
import { Card, Pill, Plain } from "@/shared/ui";
import type { Body } from "@/shared/api/types";
import { needsOf, type Draft } from "./draft";
import { meets, type Hardware } from "./needs";
import styles from "./NewJob.module.css";
import { onlineQuery } from "./queries";
import { isInStep } from "./rounds";

const MOST_SHOWN = 6;

/** Machines that could take the job's chunks now. */
export function Agents({ draft }: { draft: Draft }) {
  const { data } = useQuery(onlineQuery);
  if (isInStep(draft)) return <Slots />;
  if (!data) return null;
  const needs = needsOf(draft);
  const suited = data.filter((agent) => meets(agent.hardware as Hardware, needs)).toSorted((a, b) => Number(b.status === "IDLE") - Number(a.status === "IDLE"));
  const idle = suited.filter((agent) => agent.status === "IDLE").length;
  return (
    <Card title="Machines for this job" note={`${suited.length} of ${data.length} online`}>
      <p className={styles.idle}>{sentenceOf(suited.length, idle, data.length)}</p>
      <ul className={styles.agents}>
        {suited.slice(0, MOST_SHOWN).map((agent) => (
          <li key={agent.id}>
            <span>
              <b>
                <Plain max={30}>{agent.id}</Plain>
              </b>
              <small>{hardwareInWords(agent)}</small>
            </span>
            {agent.status === "IDLE" ? (
              <Pill tone="green" mark="ring">
                Idle
              </Pill>
            ) : (
              <Pill tone="amber" mark="dot">
                Busy
              </Pill>
            )}
          </li>
        ))}
      </ul>
      {suited.length > MOST_SHOWN && <p className={styles.small}>and {suited.length - MOST_SHOWN} more</p>}
    </Card>
  );
}

/** Slots for ranks are places of their own: whether an agent is idle says nothing of them. */
function Slots() {
  return (
    <Card title="Machines for this job">
      <p className={styles.small}>All ranks begin at once, on slots that agents offer for training in step. How many are free, the job's page says while it waits. You may submit at any time.</p>
    </Card>
  );
}

function sentenceOf(suited: number, idle: number, online: number): string {
  if (online === 0) return "No machine is online. You may submit; the job waits for one.";
  if (suited === 0) return "No machine online has what you ask for. You may submit; the job waits for one.";
  if (idle === 0 && suited === 1) return "The only one is busy now; the job waits until it is free.";
  if (idle === 0) return `All ${suited} are busy now; the job waits for the first that is free.`;
  return `${plural(idle, "machine")} could start at once.`;
}

function hardwareInWords(agent: Body<"AgentView">): string {
  const hardware = agent.hardware as Hardware;
  const parts = [plural(hardware.cores ?? 0, "core"), `${bytes(hardware.ram_bytes ?? 0)} RAM`];
  if (hardware.gpu_count) parts.push(hardware.gpu_name ?? "GPU");
  if (agent.isolation === "process") parts.push("no sandbox");
  return parts.join(", ");
}
