import { parseTime } from "@/shared/format/times";
import type { Movement } from "./queries";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MOST_DAYS = 365;

export interface Earnings {
  /** Credits earned in all. */
  total: number;
  lastDay: number;
  /** What one step of x is. */
  unit: "minute" | "hour" | "day";
  /** [number of the step, credits earned up to its end], every step from the first to now. */
  points: [number, number][];
  /** The step's name: "14:05" or "3 Oct". */
  nameOf: (step: number) => string;
}

const isEarned = (movement: Movement): boolean => movement.amount > 0 && /^(subtask|attempt):/.test(movement.reference);

/** Credits that machines earned, added up over time. The finer the steps, the shorter the time. */
export function earningsOf(movements: readonly Movement[], now: Date): Earnings {
  const earned = movements
    .filter(isEarned)
    .map((movement) => ({ at: parseTime(movement.created_at).getTime(), amount: movement.amount }))
    .toSorted((a, b) => a.at - b.at);
  const total = earned.reduce((sum, one) => sum + one.amount, 0);
  const lastDay = earned.filter((one) => one.at > now.getTime() - DAY).reduce((sum, one) => sum + one.amount, 0);
  const first = earned[0]?.at ?? now.getTime();
  const span = now.getTime() - first;
  const unit = span < 3 * HOUR ? "minute" : span < 4 * DAY ? "hour" : "day";
  // Days and hours are those of the reader's own clock.
  const offset = now.getTimezoneOffset() * MINUTE;
  const size = { minute: MINUTE, hour: HOUR, day: DAY }[unit];
  const stepOf = (at: number) => Math.floor((at - offset) / size);
  return { total, lastDay, unit, points: addUp(earned, stepOf, stepOf(now.getTime())), nameOf: (step) => nameStep(new Date(step * size + offset), unit) };
}

function addUp(earned: readonly { at: number; amount: number }[], stepOf: (at: number) => number, last: number): [number, number][] {
  const first = earned[0];
  if (!first) return [];
  const points: [number, number][] = [];
  let sum = 0;
  let next = 0;
  // One step of nothing first, so that the line begins on the ground.
  for (let step = stepOf(first.at) - 1; step <= last; step += 1) {
    for (let one = earned[next]; one && stepOf(one.at) <= step; one = earned[next]) {
      sum += one.amount;
      next += 1;
    }
    points.push([step, sum]);
  }
  return points.slice(-MOST_DAYS);
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const nameStep = (at: Date, unit: Earnings["unit"]): string => (unit === "day" ? DATE : CLOCK).format(at);
