import { plural } from "@/shared/format/numbers";

/** What decides the price: `chunks` are those that train in one round. */
export interface Plan {
  chunks: number;
  evaluations: number;
  rounds: number;
  timeLimitS: number;
  /** The chunks are ranks of one training. */
  isInStep?: boolean;
}

/** Hours of the time limit, rounded up: what one verified subtask costs. */
export const unitsOf = (timeLimitS: number): number => Math.max(1, Math.ceil(timeLimitS / 3600));

/** The chunks that train in a round: the server's max(C * K, 1), where halves go to the even number. */
export function chunksInRound(chunks: number, fraction: number): number {
  const exact = chunks * fraction;
  const rounded = Math.round(exact);
  return Math.max(1, rounded - exact === 0.5 && rounded % 2 === 1 ? rounded - 1 : rounded);
}

/** What a job costs at most, in credits. NaN while a number is missing. */
export function priceOf(plan: Plan): number {
  return unitsOf(plan.timeLimitS) * plan.rounds * (plan.chunks + plan.evaluations);
}

/** The numbers behind it, in words. */
export function priceInWords(plan: Plan): string {
  const units = unitsOf(plan.timeLimitS);
  const chunks = plural(plan.chunks, plan.isInStep ? "rank" : "chunk");
  const each = plan.evaluations > 0 ? `(${chunks} + ${plural(plan.evaluations, "evaluation")})` : chunks;
  const work = plan.isInStep ? chunks : `${plural(plan.rounds, "round")} × ${each}`;
  return units === 1 ? `${work} × 1 credit` : `${work} × ${units} credits (up to ${units} hours each)`;
}
