import type { Series } from "@/shared/ui";
import type { Body } from "@/shared/api/types";
import { heldOutValue } from "./evaluation";
import type { Job, Metric, Subtask } from "./queries";
import { learnsBy } from "./states";

export type Measure = "accuracy" | "loss";

const TONES = ["blue", "violet", "amber"] as const;

/**
 * By round: the global model on held-out rows with its best round marked, the chunks' mean weighted by rows, and each agent.
 * A round that is not over has no mean yet.
 */
export function seriesByRound(rounds: Job["round_list"], perRound: readonly Body<"RoundResult">[], measure: Measure, bestRound: number | null = null): Series[] {
  const heldOut = heldOutPoints(rounds, measure);
  const mean = meanPoints(rounds, measure);
  const byAgent = new Map<string, [number, number][]>();
  for (const item of perRound) {
    const value = measure === "accuracy" ? item.mean_accuracy : item.mean_loss;
    if (value === null) continue;
    const points = byAgent.get(item.agent_id) ?? [];
    points.push([item.round, value]);
    byAgent.set(item.agent_id, points);
  }
  const agents = [...byAgent].map(([agent, points]): Series => ({ id: `agent:${agent}`, name: agent, points, isFaint: true }));
  return [
    ...(heldOut.length > 0 ? [{ id: "heldout", name: "global model, held-out rows", points: heldOut, tone: "green", mark: markOf(bestRound) } as const] : []),
    ...(mean.length > 0 ? [{ id: "mean", name: "training, mean by rows", points: mean, tone: heldOut.length > 0 ? "blue" : "green" } as const] : []),
    ...agents,
  ];
}

export const markOf = (bestRound: number | null): Series["mark"] => (bestRound === null ? undefined : { x: bestRound, name: "best" });

/** What each round's global model came to on held-out rows. */
export function heldOutPoints(rounds: Job["round_list"], measure: Measure): [number, number][] {
  return rounds.flatMap((round): [number, number][] => {
    const value = heldOutValue(round, measure);
    return value === null ? [] : [[round.round, value]];
  });
}

/** What the chunks of each closed round reported, weighted by rows. */
export function meanPoints(rounds: Job["round_list"], measure: Measure): [number, number][] {
  return rounds.flatMap((round): [number, number][] => {
    const value = measure === "accuracy" ? round.mean_accuracy : round.mean_loss;
    return round.closed_at && value !== null ? [[round.round, value]] : [];
  });
}

const PAIR = ["green", "violet"] as const;

/** Two jobs: each on held-out rows where it has any, and the mean of its chunks; dashed where the two could be confused. */
export function seriesOfPair(jobs: readonly [Job, Job], measure: Measure): Series[] {
  return jobs.flatMap((job, index): Series[] => {
    const name = `job ${job.id}, ${learnsBy(job)}`;
    const tone = PAIR[index];
    const heldOut = heldOutPoints(job.round_list, measure);
    const mean: Series = { id: `mean:${job.id}`, name, tone, points: meanPoints(job.round_list, measure) };
    if (jobs.every(({ evaluations }) => evaluations === 0)) return [mean];
    const scored: Series = { id: `heldout:${job.id}`, name: `${name}, held-out rows`, tone, points: heldOut, mark: markOf(job.best_round) };
    return [scored, { ...mean, name: `${name}, training`, isDashed: true }].filter(({ points }) => points.length > 0);
  });
}

/** By epoch in one round: the attempt that stands for each chunk, or rank, and the mean of those that have reached the epoch, where there are several. */
export function seriesByEpoch(metrics: readonly Metric[], measure: Measure, subtasks: readonly Subtask[] = [], piece: "chunk" | "rank" = "chunk"): Series[] {
  const latest = new Map<number, number>();
  for (const item of metrics) latest.set(item.chunk, Math.max(latest.get(item.chunk) ?? 0, item.attempt));
  // A second machine that begins beside a late one does not wipe out what that one has shown so far.
  for (const { chunk, kind, attempts } of subtasks) {
    const shown = attempts.find((one) => one.status === "ACCEPTED") ?? attempts.find((one) => one.status === "RUNNING" || one.status === "VERIFYING");
    if (kind !== "evaluate" && shown) latest.set(chunk, shown.attempt);
  }
  const chunks = new Map<number, { agent: string; points: [number, number][] }>();
  const sums = new Map<number, [sum: number, count: number]>();
  for (const item of piece === "rank" ? joined(metrics) : metrics.filter(({ chunk, attempt }) => attempt === latest.get(chunk))) {
    const value = item[measure];
    if (value === null) continue;
    const x = epochOf(item);
    const chunk = chunks.get(item.chunk) ?? { agent: item.agent_id, points: [] };
    chunk.points.push([x, value]);
    chunks.set(item.chunk, chunk);
    const [sum, count] = sums.get(x) ?? [0, 0];
    sums.set(x, [sum + value, count + 1]);
  }
  const isMany = chunks.size > TONES.length;
  const own = [...chunks]
    .toSorted(([a], [b]) => a - b)
    .map(([chunk, { agent, points }], index): Series => ({
      id: `chunk:${chunk}`,
      name: `${piece} ${chunk}, ${agent}`,
      points: points.toSorted((a, b) => a[0] - b[0]),
      tone: isMany ? undefined : TONES[index],
      isFaint: isMany,
    }));
  if (own.length < 2) return own.map((series) => ({ ...series, tone: "green" }));
  const mean = [...sums].toSorted(([a], [b]) => a - b).map(([x, [sum, count]]) => [x, sum / count] as const);
  return [{ id: "mean", name: `mean of the ${piece}s`, points: mean, tone: "green" }, ...own];
}

const epochOf = (item: Metric): number => item.epoch ?? item.seq + 1;

/** A try that goes on from a checkpoint goes on with the line of the one before it: that one's epochs up to where it begins. */
function joined(metrics: readonly Metric[]): Metric[] {
  const tries = new Map<number, { attempt: number; first: number; before: number }>();
  return metrics.toReversed().filter((item) => {
    const later = tries.get(item.chunk);
    const own = later?.attempt === item.attempt ? later : { attempt: item.attempt, first: Infinity, before: later ? Math.min(later.first, later.before) : Infinity };
    own.first = Math.min(own.first, epochOf(item));
    tries.set(item.chunk, own);
    return epochOf(item) < own.before;
  });
}
