/** Hours of the time limit, rounded up: what one verified subtask costs. */
export const unitsOf = (timeLimitS: number): number => Math.max(1, Math.ceil(timeLimitS / 3600));

/** What a job costs at most, in credits. NaN while a number is missing. */
export function priceOf(plan: { chunks: number; rounds: number; timeLimitS: number }): number {
  return unitsOf(plan.timeLimitS) * plan.rounds * plan.chunks;
}

/** The numbers behind it, in words. */
export function priceInWords(plan: { chunks: number; rounds: number; timeLimitS: number }): string {
  const units = unitsOf(plan.timeLimitS);
  const work = `${plan.rounds} ${plan.rounds === 1 ? "round" : "rounds"} × ${plan.chunks} ${plan.chunks === 1 ? "chunk" : "chunks"}`;
  return units === 1 ? `${work} × 1 credit` : `${work} × ${units} credits (up to ${units} hours each)`;
}
