import type { Round } from "./evaluation";
import type { Job, Rank, Subtask } from "./queries";

const AT = "2026-01-01T00:00:00Z";

/** What tests make of a job; whatever they do not look at is as of a small one. */
export const roundOf = (round: number, more: Partial<Round> = {}): Round => ({
  round,
  opened_at: AT,
  closed_at: "2026-01-01T00:01:00Z",
  updates_used: 2,
  rows_used: 10,
  convergence_delta: 0,
  step_norm: 1,
  mean_loss: null,
  mean_accuracy: null,
  evaluation: null,
  deadline_at: null,
  global_model_sha256: null,
  ...more,
});

export const scoredRound = (round: number, metrics: Record<string, number>, more: Partial<Round> = {}): Round =>
  roundOf(round, { evaluation: { metrics, rows: 20, agents: ["ada", "bob"], differ: [] }, global_model_sha256: "ab".repeat(32), ...more });

type Attempt = Subtask["attempts"][number];

export const attemptOf = (attempt: number, agent_id: string, status: string, more: Partial<Attempt> = {}): Attempt => ({
  attempt,
  agent_id,
  status,
  phase: "TRAINING",
  progress: 0.5,
  epoch: 3,
  loss: null,
  accuracy: null,
  reason: null,
  fault: null,
  train_s: null,
  started_at: AT,
  finished_at: null,
  paid: 0,
  ...more,
});

export const subtaskOf = (kind: string, chunk: number, status: string, attempts: Attempt[], more: Partial<Subtask> = {}): Subtask => {
  const shown = attempts.find((one) => one.status === "ACCEPTED") ?? attempts.at(-1);
  return {
    id: chunk + 1,
    round: 1,
    chunk,
    kind,
    status,
    rows: 10,
    attempt: attempts.length,
    agent_id: shown?.agent_id ?? null,
    phase: shown?.phase ?? null,
    progress: shown?.progress ?? null,
    epoch: shown?.epoch ?? null,
    loss: null,
    accuracy: null,
    duration_s: 1,
    reason: null,
    attempts,
    ...more,
  };
};

export const rankOf = (rank: number, agent_id: string, state: string, more: Partial<Rank> = {}): Rank => ({
  rank,
  agent_id,
  state,
  epoch: null,
  step: null,
  loss: null,
  samples_per_s: null,
  seen_at: null,
  ...more,
});

type Gang = NonNullable<Job["gang"]>;

export const gangOf = (ranks: Rank[], more: Partial<Gang> = {}): Gang => ({
  number: 1,
  status: "TRAINING",
  reason: null,
  started_at: AT,
  ended_at: null,
  resumed_from: null,
  checkpoints: 0,
  ranks,
  ...more,
});

export const jobOf = (more: Partial<Job> = {}): Job => ({
  id: 7,
  title: "a job",
  status: "RUNNING",
  reason: null,
  dataset_id: 1,
  dataset_name: "rows.csv",
  recipe: null,
  mode: "federated",
  chunks: 2,
  rounds: 3,
  current_round: 1,
  strategy: "fedavg",
  partitioner: "iid",
  price: 12,
  total_subtasks: 6,
  completed_subtasks: 2,
  created_at: AT,
  started_at: AT,
  finished_at: null,
  arguments: [],
  partitioner_options: {},
  strategy_options: {},
  hyperparameters: {},
  time_limit_s: 3600,
  needs: { gpu: false, ram_bytes: 0, vram_bytes: 0 },
  min_updates: 2,
  chunks_per_round: 2,
  round_deadline_s: null,
  backups: true,
  held_out_share: 0,
  evaluations: 0,
  early_stopping: null,
  has_initial_model: false,
  best_round: null,
  seed: 1,
  units: 1,
  held: 0,
  paid: 0,
  warnings: [],
  waiting_for: null,
  round_list: [],
  subtasks: [],
  gang: null,
  events: [],
  ...more,
});
