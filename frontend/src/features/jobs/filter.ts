import { hasEnded, type JobSummary } from "./queries";

export type StateFilter = "all" | "live" | "COMPLETED" | "FAILED" | "CANCELLED";

export interface Filter {
  state: StateFilter;
  text: string;
}

const STATES: readonly StateFilter[] = ["all", "live", "COMPLETED", "FAILED", "CANCELLED"];

export function readFilter(params: URLSearchParams): Filter {
  const state = STATES.find((one) => one === params.get("state")) ?? "all";
  return { state, text: params.get("q") ?? "" };
}

export function filterJobs(jobs: readonly JobSummary[], { state, text }: Filter): JobSummary[] {
  const wanted = text.trim().toLowerCase();
  return jobs.filter(
    (job) =>
      (state === "all" || stateOf(job) === state) &&
      (!wanted || String(job.id) === wanted || job.title.toLowerCase().includes(wanted) || job.dataset_name.toLowerCase().includes(wanted)),
  );
}

export function countStates(jobs: readonly JobSummary[]): Record<StateFilter, number> {
  const counts: Record<StateFilter, number> = { all: jobs.length, live: 0, COMPLETED: 0, FAILED: 0, CANCELLED: 0 };
  for (const job of jobs) counts[stateOf(job)] += 1;
  return counts;
}

const stateOf = (job: JobSummary): StateFilter => (hasEnded(job) ? (job.status as StateFilter) : "live");
