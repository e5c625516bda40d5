import { sentence } from "@/shared/format/text";
import type { Mark, Tone } from "@/shared/ui";
import { parseTime } from "@/shared/format/times";
import type { Machine } from "@/shared/machines/hardware";
import type { Task } from "./queries";

export interface Outcome {
  word: string;
  tone: Tone;
  mark: Mark;
}

const OUTCOMES: Record<string, Outcome> = {
  VERIFYING: { word: "Being verified", tone: "blue", mark: "ring" },
  ACCEPTED: { word: "Accepted", tone: "green", mark: "check" },
  REFUSED: { word: "Refused", tone: "red", mark: "cross" },
  FAILED: { word: "Failed", tone: "red", mark: "cross" },
  LOST: { word: "Lost contact", tone: "amber", mark: "dash" },
  CANCELLED: { word: "Cancelled", tone: "grey", mark: "dash" },
};

/** How an attempt stands, in a word with a shape. A running one says its phase. */
export function outcomeOf(task: Pick<Task, "status" | "phase" | "epoch">): Outcome {
  if (task.status === "RUNNING") return { word: phaseWords(task), tone: "amber", mark: "pulse" };
  return OUTCOMES[task.status] ?? { word: sentence(task.status.toLowerCase()), tone: "grey", mark: "dot" };
}

/** "Training, epoch 4" */
export function phaseWords({ phase, epoch }: Pick<Task, "phase" | "epoch">): string {
  if (!phase) return "Starting";
  const word = sentence(phase.toLowerCase());
  return phase === "TRAINING" && epoch !== null ? `${word}, epoch ${epoch}` : word;
}

/** "Round 2, chunk 0", and from the second attempt on which one it was. */
export function pieceWords(task: Pick<Task, "round" | "chunk" | "attempt">): string {
  const again = task.attempt > 1 ? `, attempt ${task.attempt}` : "";
  return `Round ${task.round}, chunk ${task.chunk}${again}`;
}

/** How many attempts were accepted, and how many came to nothing through fault or silence. */
export function tally(tasks: readonly Task[]): { accepted: number; failed: number } {
  let accepted = 0;
  let failed = 0;
  for (const task of tasks) {
    if (task.status === "ACCEPTED") accepted += 1;
    if (["REFUSED", "FAILED", "LOST"].includes(task.status)) failed += 1;
  }
  return { accepted, failed };
}

/** How a machine's health stands: in quarantine before anything the doctor found. */
export function verdictOf(machine: Pick<Machine, "doctor" | "quarantined_until" | "quarantine_reason">, now = Date.now()): Outcome & { why: string | null } {
  if (machine.quarantined_until && parseTime(machine.quarantined_until).getTime() > now) {
    return { word: "In quarantine", tone: "red", mark: "cross", why: machine.quarantine_reason };
  }
  if (!machine.doctor) return { word: "Not examined", tone: "grey", mark: "dash", why: null };
  const failed = machine.doctor.checks.filter((check) => check.problem).length;
  if (failed > 0) return { word: `${failed} of ${machine.doctor.checks.length} checks failed`, tone: "red", mark: "cross", why: null };
  return { word: "All is well", tone: "green", mark: "check", why: null };
}
