import { sentence } from "@/shared/format/text";
import { strategyLabel } from "@/shared/learning/words";
import { Pill, type Mark, type Tone } from "@/shared/ui";
import { isInStep, type JobSummary, type Rank, type Subtask } from "./queries";

type Look = readonly [words: string, tone: Tone, mark: Mark];

export const JOB_STATES = ["live", "COMPLETED", "FAILED", "CANCELLED"] as const;

export function jobLook(job: Pick<JobSummary, "status" | "started_at">): Look {
  switch (job.status) {
    case "PROCESSING":
      return ["Preparing", "amber", "pulse"];
    case "RUNNING":
      return job.started_at ? ["Training", "green", "pulse"] : ["Waiting for a machine", "amber", "ring"];
    case "AGGREGATING":
      return ["Merging", "green", "pulse"];
    case "COMPLETED":
      return ["Completed", "green", "check"];
    case "FAILED":
      return ["Failed", "red", "cross"];
    default:
      return [job.status === "CANCELLED" ? "Cancelled" : job.status, "grey", "dash"];
  }
}

/** `isStill` where there may be very many: each moving mark costs a repaint of its own. */
export function JobPill({ job, isStill = false }: { job: Pick<JobSummary, "status" | "started_at">; isStill?: boolean }) {
  const [words, tone, moving] = jobLook(job);
  const mark = isStill && moving === "pulse" ? "dot" : moving;
  return (
    <Pill tone={tone} mark={mark}>
      {words}
    </Pill>
  );
}

/** "FedAvg", or that all train in step. */
export const learnsBy = (job: Pick<JobSummary, "mode" | "strategy">): string => (isInStep(job) ? "In step" : strategyLabel(job.strategy));

/** The first line of a reason, and the last, which names the error. */
export function inBrief(reason: string): string {
  const lines = reason.trim().split("\n");
  return lines.length > 1 ? `${lines[0]} … ${lines.at(-1)}` : (lines[0] ?? "");
}

const PHASES: Record<string, string> = {
  DOWNLOADING: "Fetching rows",
  INSTALLING: "Installing packages",
  STARTING: "Starting",
  TRAINING: "Training",
  UPLOADING: "Sending its update",
};

const EVALUATION_PHASES: Record<string, string> = { ...PHASES, TRAINING: "Evaluating", UPLOADING: "Sending its numbers" };

/** "Chunk 2"; "Evaluation", of which each has its own machine; "Rank 0" of a synchronous training. */
export function subtaskName({ kind, chunk }: Pick<Subtask, "kind" | "chunk">): string {
  if (kind === "evaluate") return "Evaluation";
  return `${kind === "train" ? "Chunk" : sentence(kind)} ${chunk}`;
}

/** Attempts that go on now: two, where a second machine was given a late chunk. */
export const atWork = (subtask: Subtask): Subtask["attempts"] => subtask.attempts.filter(({ status }) => status === "RUNNING" || status === "VERIFYING");

export function subtaskLook(subtask: Subtask): Look {
  const tried = subtask.attempts.length;
  switch (subtask.status) {
    case "PENDING":
      return tried > 0 ? [`${lastFailure(subtask)}, tried again`, "red", "cross"] : ["Waiting", "amber", "ring"];
    case "RUNNING":
      return [phaseLook(subtask), "blue", "dot"];
    case "VERIFYING":
      return ["Being verified", "blue", "ring"];
    case "COMPLETED":
      return ["Verified", "green", "check"];
    case "FAILED":
      return ["Failed", "red", "cross"];
    default:
      return [subtask.status === "CANCELLED" ? "Cancelled" : subtask.status, "grey", "dash"];
  }
}

function phaseLook(subtask: Subtask): string {
  if (atWork(subtask).length > 1) return "On two machines";
  return subtask.kind === "evaluate" ? (EVALUATION_PHASES[subtask.phase ?? ""] ?? "Evaluating") : (PHASES[subtask.phase ?? ""] ?? "Training");
}

function lastFailure(subtask: Subtask): string {
  const status = subtask.attempts.at(-1)?.status;
  return status === "REFUSED" ? "Refused" : status === "LOST" ? "Machine lost" : "Failed";
}

export function SubtaskPill({ subtask }: { subtask: Subtask }) {
  const [words, tone, mark] = subtaskLook(subtask);
  return (
    <Pill tone={tone} mark={mark}>
      {words}
    </Pill>
  );
}

/** Whether a rank's machine still has something to do. */
export const isAtWork = ({ state }: Pick<Rank, "state">): boolean => state === "RESERVED" || state === "READY" || state in PHASES;

export function rankLook({ rank, state }: Pick<Rank, "rank" | "state">): Look {
  switch (state) {
    case "RESERVED":
      return ["Reserved", "amber", "ring"];
    case "READY":
      return ["Ready", "blue", "ring"];
    case "UPLOADING":
      return ["Sending its model", "blue", "dot"];
    case "VERIFYING":
      return [rank === 0 ? "Being verified" : "Ended well", "blue", "ring"];
    case "ACCEPTED":
      return ["Verified", "green", "check"];
    case "FAILED":
      return ["Failed", "red", "cross"];
    case "REFUSED":
      return ["Refused", "red", "cross"];
    case "LOST":
      return ["Lost", "red", "cross"];
    case "CANCELLED":
      return ["Cancelled", "grey", "dash"];
    default:
      return [PHASES[state] ?? state, "blue", "dot"];
  }
}

export function RankPill({ rank }: { rank: Pick<Rank, "rank" | "state"> }) {
  const [words, tone, mark] = rankLook(rank);
  return (
    <Pill tone={tone} mark={mark}>
      {words}
    </Pill>
  );
}
