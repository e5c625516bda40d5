import type { Body } from "@/shared/api/types";
import { chunksInRound } from "./price";
import type { Draft, Errors } from "./draft";

type JobRequest = Body<"JobRequest">;

/** The part of the form about rounds, evaluation and where training starts. Shares are typed in percent, the deadline in minutes. */
export interface RoundsDraft {
  /** In rounds, or all ranks in step. Only a script has the choice. */
  mode: JobRequest["mode"];
  heldOut: string;
  evaluations: "1" | "2";
  stopsEarly: boolean;
  patience: string;
  minDelta: string;
  monitor: "" | "accuracy" | "loss";
  fraction: string;
  deadline: string;
  backups: boolean;
  start: "fresh" | "job" | "file";
  initialJob: string;
  initialRound: string;
  initialModel: File | null;
}

export const USUAL_ROUNDS: RoundsDraft = {
  mode: "federated",
  heldOut: "",
  evaluations: "2",
  stopsEarly: false,
  patience: "3",
  minDelta: "",
  monitor: "",
  fraction: "",
  deadline: "",
  backups: true,
  start: "fresh",
  initialJob: "",
  initialRound: "",
  initialModel: null,
};

/** The server's names for the fields here. */
export const ROUND_FIELDS = {
  held_out: "heldOut",
  evaluations: "evaluations",
  early_stopping: "stopsEarly",
  "early_stopping.patience": "patience",
  "early_stopping.min_delta": "minDelta",
  "early_stopping.monitor": "monitor",
  min_updates: "minUpdates",
  fraction: "fraction",
  round_deadline_s: "deadline",
  backups: "backups",
  initial_job_id: "initialJob",
  initial_round: "initialRound",
  file_model: "initialModel",
} as const satisfies Record<string, keyof Draft>;

const MOST_ROUNDS = 1000;
const LEAST_DEADLINE_S = 10;
const MOST_DEADLINE_S = 7 * 24 * 3600;

/** Whether all ranks train one model together. Nothing else of this part counts then; what was typed stays for a change of mind. */
export const isInStep = (draft: Pick<Draft, "way" | "mode">): boolean => draft.way === "script" && draft.mode === "ddp";

const numberOf = (text: string): number => (text.trim() ? Number(text) : Number.NaN);

/** From 0 to 0.5; NaN for what is no number. */
export const heldOutOf = (draft: Pick<Draft, "heldOut">): number => (draft.heldOut.trim() ? Number(draft.heldOut) / 100 : 0);

const fractionOf = (draft: Pick<Draft, "fraction">): number => (draft.fraction.trim() ? Number(draft.fraction) / 100 : 1);

/** How many chunks train in a round. NaN while a number is missing. */
export const takingPart = (draft: Pick<Draft, "fraction" | "chunks">): number => chunksInRound(numberOf(draft.chunks), fractionOf(draft));

/** How often a round's model is scored. */
export const evaluationsOf = (draft: Pick<Draft, "heldOut" | "evaluations">): number => (heldOutOf(draft) > 0 ? Number(draft.evaluations) : 0);

/** How many rows no chunk gets: the server's own rule. */
export const rowsHeldOut = (rows: number, share: number): number => (share > 0 ? Math.max(1, Math.round(rows * share)) : 0);

/** What is wrong here, each beside its field. */
export function roundProblems(draft: Draft): Errors {
  const found: Errors = {};
  if (isInStep(draft)) return found;
  const isWhole = (text: string, low: number, high: number) => Number.isInteger(numberOf(text)) && Number(text) >= low && Number(text) <= high;
  const heldOut = heldOutOf(draft);
  if (!(heldOut >= 0 && heldOut <= 0.5)) found.heldOut = "A share in percent, from 0 to 50";
  if (heldOut > 0 && draft.stopsEarly) {
    if (!isWhole(draft.patience, 1, MOST_ROUNDS)) found.patience = "A whole number from 1 to 1,000";
    if (draft.minDelta.trim() && !(Number(draft.minDelta) >= 0 && Number(draft.minDelta) <= 1e9)) found.minDelta = "A number from 0, such as 0.001";
  }
  const fraction = fractionOf(draft);
  if (!(fraction > 0 && fraction <= 1)) found.fraction = "A share in percent, above 0, up to 100";
  const most = takingPart(draft);
  if (draft.minUpdates.trim() && most > 0 && !isWhole(draft.minUpdates, 1, most)) {
    found.minUpdates = most === 1 ? "One chunk trains in a round, so that it can only be 1" : `A whole number from 1 to ${most}, the chunks of a round`;
  }
  const deadline = numberOf(draft.deadline) * 60;
  if (draft.deadline.trim() && !(deadline >= LEAST_DEADLINE_S && deadline <= MOST_DEADLINE_S)) found.deadline = "Minutes, from 0.2 to 10,080";
  if (draft.start === "job") {
    if (!isWhole(draft.initialJob, 1, 2 ** 53)) found.initialJob = "Choose the job whose model this one starts from";
    if (draft.initialRound.trim() && !isWhole(draft.initialRound, 0, MOST_ROUNDS)) found.initialRound = "A whole number from 0 to 1,000, or nothing for the best round";
  }
  if (draft.start === "file" && draft.way === "script" && !draft.initialModel) found.initialModel = "Choose the .pth file to start from";
  return found;
}

/** The part of POST /jobs about rounds. The draft must have no problems. A model file travels beside it. */
export function roundsRequest(draft: Draft) {
  const isScored = evaluationsOf(draft) > 0;
  return {
    mode: "federated",
    min_updates: draft.minUpdates.trim() ? Number(draft.minUpdates) : null,
    fraction: fractionOf(draft),
    round_deadline_s: draft.deadline.trim() ? Math.round(Number(draft.deadline) * 60) : null,
    backups: draft.backups,
    held_out: heldOutOf(draft),
    evaluations: Number(draft.evaluations),
    early_stopping:
      isScored && draft.stopsEarly ? { patience: Number(draft.patience), min_delta: Number(draft.minDelta) || 0, monitor: draft.monitor || null } : null,
    initial_job_id: draft.start === "job" ? Number(draft.initialJob) : null,
    initial_round: draft.start === "job" && draft.initialRound.trim() ? Number(draft.initialRound) : null,
  } satisfies Partial<JobRequest>;
}

/** Where training starts by the page's address: `?initial_job_id=7&initial_round=3`. */
export function startIn(params: URLSearchParams): Partial<RoundsDraft> {
  const [job, round] = ["initial_job_id", "initial_round"].map((name) => /^\d{1,16}$/.exec(params.get(name) ?? "")?.[0] ?? "");
  return Number(job) > 0 ? { start: "job", initialJob: job, initialRound: round } : {};
}

/** The model file that is sent along; a no-code job takes none. */
export const modelFileOf = (draft: Draft): File | null => (draft.start === "file" && draft.way === "script" && !isInStep(draft) ? draft.initialModel : null);

/** What repeats a job's rounds. Where it started from is not repeated: its own model is the better start by now. */
export function roundsDraft(job: Body<"JobView">): RoundsDraft & Pick<Draft, "minUpdates"> {
  const stopping = job.early_stopping;
  return {
    ...USUAL_ROUNDS,
    mode: job.mode === "ddp" ? "ddp" : "federated",
    heldOut: percentText(job.held_out_share),
    evaluations: job.evaluations === 1 ? "1" : "2",
    stopsEarly: stopping !== null,
    patience: String(stopping?.patience ?? USUAL_ROUNDS.patience),
    minDelta: stopping?.min_delta ? String(stopping.min_delta) : "",
    monitor: stopping?.monitor ?? "",
    fraction: job.chunks_per_round === job.chunks ? "" : percentText(job.chunks_per_round / job.chunks),
    minUpdates: job.min_updates === job.chunks_per_round ? "" : String(job.min_updates),
    deadline: job.round_deadline_s === null ? "" : String(+(job.round_deadline_s / 60).toFixed(2)),
    backups: job.backups,
    ...(job.has_initial_model && { start: "job" as const, initialJob: String(job.id), initialRound: "0" }),
  };
}

const percentText = (share: number): string => (share ? String(+(share * 100).toFixed(4)) : "");

/** What is chosen, for the closed section. */
export function roundsInWords(draft: Draft): string {
  const held = heldOutOf(draft);
  const part = takingPart(draft);
  const parts = [
    held > 0 && `${draft.heldOut.trim()} % of the rows held out`,
    held > 0 && draft.stopsEarly && "stops early",
    part > 0 && part < Number(draft.chunks) && `${part} of ${draft.chunks} chunks in a round`,
    draft.minUpdates.trim() && `at least ${draft.minUpdates.trim()} updates`,
    draft.deadline.trim() && `deadline ${draft.deadline.trim()} min`,
    !draft.backups && "no second machines",
    draft.start === "job" && draft.initialJob && `from job ${draft.initialJob}${draft.initialRound.trim() ? `, round ${draft.initialRound.trim()}` : ""}`,
    modelFileOf(draft) && "from a model file",
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : "No held-out rows, all chunks in each round";
}
