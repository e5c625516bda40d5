import type { Body } from "@/shared/api/types";
import { partitionerCalled } from "@/shared/learning/partitioners";
import { strategyCalled } from "@/shared/learning/strategies";
import type { Plan } from "./price";
import { recipeDraft, recipeProblems, recipeRequest } from "./recipe";
import { evaluationsOf, heldOutOf, isInStep, roundProblems, roundsDraft, roundsRequest, rowsHeldOut, takingPart, USUAL_ROUNDS, type RoundsDraft } from "./rounds";
import { optionProblems, partitionerOptionsOf, strategyOptionsOf, textsOf, type OptionField, type Texts } from "./options";

/** What is left out is as the server has it by default. */
export type JobRequest = Partial<Body<"JobRequest">> & { title: string };
export type Dataset = Body<"DatasetOut">;

/** The form, as it is being filled in. Numbers are text until it is sent, so that a field can be empty meanwhile. */
export interface Draft extends RoundsDraft {
  title: string;
  /** A script of one's own, or a model of the server's. */
  way: "script" | "model";
  model: string;
  modelOptions: Texts;
  /** The column that a model predicts. */
  target: string;
  /** A dataset that the server brings along; empty: a table of one's own. Only for models. */
  offered: string;
  script: string;
  scriptName: string;
  requirements: string;
  requirementsName: string;
  dataset: Dataset | null;
  rounds: string;
  chunks: string;
  hours: string;
  strategy: string;
  strategyOptions: Texts;
  partitioner: string;
  partitionerOptions: Texts;
  args: string;
  hyperparameters: string;
  minUpdates: string;
  seed: string;
  needsGpu: boolean;
  ramGib: string;
  vramGib: string;
  keepUpdates: boolean;
}

export const EMPTY: Draft = {
  title: "",
  way: "script",
  model: "mlp",
  modelOptions: {},
  target: "",
  offered: "",
  script: "",
  scriptName: "",
  requirements: "",
  requirementsName: "",
  dataset: null,
  rounds: "3",
  chunks: "5",
  hours: "1",
  strategy: "fedavg",
  strategyOptions: {},
  partitioner: "iid",
  partitionerOptions: {},
  args: "",
  hyperparameters: "",
  minUpdates: "",
  seed: "",
  needsGpu: false,
  ramGib: "",
  vramGib: "",
  keepUpdates: false,
  ...USUAL_ROUNDS,
};

export type Errors = Partial<Record<keyof Draft | OptionField, string>>;

const GIB = 2 ** 30;

/** What still keeps the form from being sent, beside the field it belongs to. */
export function problemsOf(draft: Draft): Errors {
  const found: Errors = { ...optionProblems(draft), ...roundProblems(draft) };
  if (!draft.title.trim()) found.title = "Give the job a name";
  if (draft.way === "model") Object.assign(found, recipeProblems(draft));
  else {
    if (!draft.script.trim()) found.script = "Choose a training script";
    if (!draft.dataset) found.dataset = "Upload a CSV, or choose one that you uploaded before";
  }
  const whole = (name: keyof Draft, low: number, high: number) => {
    const text = String(draft[name]).trim();
    const value = Number(text);
    if (!text || !Number.isInteger(value) || value < low || value > high) found[name] = `A whole number from ${low} to ${high.toLocaleString("en")}`;
  };
  const inStep = isInStep(draft);
  if (!inStep) whole("rounds", 1, 1000);
  whole("chunks", 1, 1000);
  if (draft.seed.trim()) whole("seed", 0, 2 ** 31 - 1);
  const hours = Number(draft.hours);
  if (!draft.hours.trim() || !(hours >= 0.01 && hours <= 168)) found.hours = "Hours, from 0.01 to 168";
  for (const name of ["ramGib", "vramGib"] as const) {
    if (draft[name].trim() && !(Number(draft[name]) >= 0)) found[name] = "GiB, such as 4";
  }
  const dataset = usedDataset(draft);
  const held = dataset && !inStep ? rowsHeldOut(dataset.rows, heldOutOf(draft)) : 0;
  if (dataset && Number(draft.chunks) > dataset.rows - held) {
    found.chunks = `The dataset has ${dataset.rows} rows${held > 0 ? `, ${held} of them held out` : ""}; ${inStep ? "ranks" : "chunks"} cannot be more`;
  }
  if (draft.way === "script" && draft.hyperparameters.trim() && !isObject(draft.hyperparameters)) found.hyperparameters = 'A JSON object, such as {"epochs": 5, "learning_rate": 0.03}';
  return found;
}

export const timeLimitOf = (draft: Draft): number => Math.round(Number(draft.hours) * 3600);

export function planOf(draft: Draft): Plan {
  const timeLimitS = timeLimitOf(draft);
  if (isInStep(draft)) return { chunks: takingPart({ ...draft, fraction: "" }), evaluations: 0, rounds: 1, timeLimitS, isInStep: true };
  return { chunks: takingPart(draft), evaluations: evaluationsOf(draft), rounds: Number(draft.rounds), timeLimitS };
}

export function needsOf(draft: Draft): Body<"Needs"> {
  return { gpu: draft.needsGpu, ram_bytes: Math.round(Number(draft.ramGib) * GIB) || 0, vram_bytes: Math.round(Number(draft.vramGib) * GIB) || 0 };
}

/** The body of POST /jobs. The draft must have no problems. */
export function requestOf(draft: Draft): JobRequest {
  return {
    title: draft.title.trim(),
    ...(draft.way === "model" ? recipeRequest(draft) : scriptRequest(draft)),
    chunks: Number(draft.chunks),
    time_limit_s: timeLimitOf(draft),
    ...(isInStep(draft) ? { mode: "ddp" } : mergingRequest(draft)),
    seed: draft.seed.trim() ? Number(draft.seed) : null,
    needs: needsOf(draft),
    partitioner: draft.partitioner,
    partitioner_options: partitionerOptionsOf(draft),
    require_idle: false,
  };
}

/** What only jobs have that train apart and are merged: the server refuses most of it in step. */
const mergingRequest = (draft: Draft): Partial<JobRequest> => ({
  rounds: Number(draft.rounds),
  ...roundsRequest(draft),
  keep_updates: draft.keepUpdates,
  strategy: draft.strategy,
  strategy_options: strategyOptionsOf(draft),
});

const scriptRequest = (draft: Draft): Partial<JobRequest> => ({
  script: draft.script,
  requirements: draft.requirements,
  dataset_id: draft.dataset?.id ?? null,
  // The server takes one string in shell quoting as well as a list, which the schema cannot say.
  arguments: draft.args.trim() as unknown as string[],
  hyperparameters: draft.hyperparameters.trim() ? (JSON.parse(draft.hyperparameters) as Record<string, unknown>) : {},
});

/** The table that the job will train on, where it is known by now. */
export const usedDataset = (draft: Draft): Dataset | null => (draft.way === "model" && draft.offered ? null : draft.dataset);

/** A draft that repeats a job. Its title says so. */
export function draftOf(job: Body<"JobView">, script: string, requirements: string, dataset: Dataset | null): Draft {
  return {
    title: job.title,
    ...recipeDraft(job),
    offered: "",
    script: job.recipe ? "" : script,
    scriptName: `script of job ${job.id}`,
    requirements,
    requirementsName: requirements ? `requirements of job ${job.id}` : "",
    dataset,
    rounds: String(job.rounds),
    chunks: String(job.chunks),
    hours: String(+(job.time_limit_s / 3600).toFixed(2)),
    strategy: job.strategy,
    strategyOptions: textsOf(strategyCalled(job.strategy)?.options, job.strategy_options),
    partitioner: job.partitioner,
    partitionerOptions: textsOf(partitionerCalled(job.partitioner)?.options, job.partitioner_options),
    args: job.recipe ? "" : job.arguments.map(quoted).join(" "),
    hyperparameters: !job.recipe && Object.keys(job.hyperparameters).length > 0 ? JSON.stringify(job.hyperparameters) : "",
    ...roundsDraft(job),
    seed: "",
    needsGpu: job.needs.gpu ?? false,
    ramGib: gib(job.needs.ram_bytes),
    vramGib: gib(job.needs.vram_bytes),
    keepUpdates: false,
  };
}

/** One argument as a shell would need it. */
export const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

const gib = (size: number | undefined): string => (size ? String(+(size / GIB).toFixed(2)) : "");

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
