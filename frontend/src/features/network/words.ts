import type { Body } from "@/shared/api/types";
import type { Filter } from "./queries";

export type Summary = Body<"SummaryView">;

export interface Choice {
  filter: Filter | null;
  /** As it stands in the address; empty for all. */
  param: string;
  word: string;
  number: number;
}

/** The filters of the machines' table with how many each leaves. */
export function choicesOf({ agents }: Summary): Choice[] {
  return [
    { filter: null, param: "", word: "All", number: agents.total },
    { filter: "IDLE", param: "idle", word: "Idle", number: agents.idle },
    { filter: "BUSY", param: "busy", word: "Busy", number: agents.busy },
    { filter: "OFFLINE", param: "offline", word: "Offline", number: agents.offline },
  ];
}

const FILTERS = new Map<string, Filter>([
  ["idle", "IDLE"],
  ["busy", "BUSY"],
  ["offline", "OFFLINE"],
  ["online", "ONLINE"],
]);

/** What the address asks for; anything unknown is all. */
export const filterOf = (param: string | null): Filter | null => FILTERS.get((param ?? "").toLowerCase()) ?? null;

/** One sentence about the network as it is. */
export function sayNetwork({ agents, jobs }: Summary): string {
  if (agents.total === 0) return "No machine has registered yet.";
  if (agents.online === 0) return "No machine is online; jobs wait until one is.";
  const waiting = jobs.queued > 0 ? ` ${jobs.queued === 1 ? "One job waits" : `${jobs.queued} jobs wait`} for a machine.` : "";
  if (agents.idle === 0) return `Every machine that is online is working.${waiting}`;
  if (agents.busy === 0) return `${agents.idle === 1 ? "One machine is" : `${agents.idle} machines are`} ready to start at once.${waiting}`;
  return `${agents.busy === 1 ? "One" : agents.busy} of ${agents.online} machines online ${agents.busy === 1 ? "is" : "are"} working, ${agents.idle === 1 ? "one is" : `${agents.idle} are`} ready to start at once.${waiting}`;
}
