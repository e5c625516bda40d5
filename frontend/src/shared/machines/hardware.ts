import type { Body } from "@/shared/api/types";
import { bytes, plural } from "@/shared/format/numbers";

export type Machine = Body<"AgentView">;
export type MachineState = Machine["status"];

/** What a machine said about itself. It may say anything: what is missing or of another kind is null. */
export interface Hardware {
  os: string | null;
  cores: number | null;
  ram: number | null;
  diskFree: number | null;
  gpuName: string | null;
  gpuCount: number;
  vram: number | null;
  python: string | null;
  torch: string | null;
  workerVersion: string | null;
}

export function hardwareOf(machine: Machine): Hardware {
  const said = machine.hardware;
  return {
    os: words(said["os"]),
    cores: number(said["cores"]),
    ram: number(said["ram_bytes"]),
    diskFree: number(said["disk_free_bytes"]),
    gpuName: words(said["gpu_name"]),
    gpuCount: number(said["gpu_count"]) ?? 0,
    vram: number(said["vram_bytes"]) || null,
    python: words(said["python_version"]),
    torch: words(said["torch_version"]),
    workerVersion: words(said["worker_version"]),
  };
}

/** "8 cores · 31 GiB · RTX 4090" */
export function hardwareLine(machine: Machine): string {
  const { cores, ram, gpuCount } = hardwareOf(machine);
  const gpu = gpuCount > 0 ? gpuLine(machine) : null;
  return [cores && plural(cores, "core"), ram && bytes(ram), gpu].filter(Boolean).join(" · ") || "unknown";
}

/** "2 x RTX 4090", or "none" */
export function gpuLine(machine: Machine): string {
  const { gpuName, gpuCount } = hardwareOf(machine);
  if (gpuCount === 0) return "none";
  const name = gpuName ?? "GPU";
  return gpuCount === 1 ? name : `${gpuCount} × ${name}`;
}

const ISOLATIONS: Record<string, { name: string; explained: string; isWalled: boolean }> = {
  docker: { name: "Docker", explained: "Each script runs in a container: no network, read-only, limited memory and cores.", isWalled: true },
  "docker+runsc": { name: "Docker with gVisor", explained: "Each script runs in a container with a kernel of its own: no network, read-only, limited memory and cores.", isWalled: true },
  process: { name: "Process, no walls", explained: "Scripts run as ordinary processes of the provider. For the provider's own code only.", isWalled: false },
};

export function isolationOf(machine: Machine) {
  return ISOLATIONS[machine.isolation] ?? { name: machine.isolation || "unknown", explained: "This server does not know this kind of sandbox.", isWalled: false };
}

const words = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
