import type { ReactNode } from "react";
import { bytes, count } from "@/shared/format/numbers";
import { Facts, Plain } from "@/shared/ui";
import { gpuLine, hardwareOf, isolationOf, type Machine } from "./hardware";

/** A machine's hardware and software, name by name. The hostname is there for its owner alone. */
export function HardwareFacts({ machine }: { machine: Machine }) {
  const said = hardwareOf(machine);
  const items: [string, ReactNode][] = [
    ["Cores", said.cores === null ? "–" : count(said.cores)],
    ["Memory", bytes(said.ram)],
    ["Free disk", bytes(said.diskFree)],
    ["GPU", <Plain key="gpu">{gpuLine(machine)}</Plain>],
  ];
  if (said.vram) items.push(["GPU memory", bytes(said.vram)]);
  items.push(
    ["System", said.os ? <Plain key="os">{said.os}</Plain> : "–"],
    ["Python in the sandbox", said.python ? <Plain key="python">{said.python}</Plain> : "–"],
    ["PyTorch in the sandbox", said.torch ? <Plain key="torch">{said.torch}</Plain> : "–"],
    ["Isolation", isolationOf(machine).name],
  );
  if (said.workerVersion) items.push(["Worker", <Plain key="worker">{said.workerVersion}</Plain>]);
  if (machine.hostname) items.push(["Host name (only you see it)", <Plain key="host">{machine.hostname}</Plain>]);
  return <Facts items={items} />;
}
