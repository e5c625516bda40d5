export interface Series {
  id: string;
  name: string;
  /** [x, y], ascending in x. */
  points: readonly (readonly [number, number])[];
  tone?: "green" | "blue" | "amber" | "violet" | "red" | "faint";
  isFaint?: boolean;
  isDashed?: boolean;
  /** One of its points that stands out, such as the best: ringed, with its value and these words. */
  mark?: { x: number; name: string };
}

const MOST_ROWS = 120;
const MOST_COLUMNS = 12;

/** The ends of all values on an axis, at least those of `least`; never of no width. */
export function domainOf(series: readonly Series[], axis: 0 | 1, least?: readonly [number, number]): [number, number] {
  let low = least?.[0] ?? Infinity;
  let high = least?.[1] ?? -Infinity;
  for (const item of series) {
    for (const point of item.points) {
      low = Math.min(low, point[axis]);
      high = Math.max(high, point[axis]);
    }
  }
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/** About `most` whole numbers between the ends, first and last included where they are whole. */
export function wholeTicks([low, high]: readonly [number, number], most: number): number[] {
  const first = Math.ceil(low);
  const last = Math.floor(high);
  if (last <= first) return [first];
  const raw = (last - first) / Math.max(1, most - 1);
  const size = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((one) => one >= raw) ?? Math.ceil(raw);
  const ticks = [];
  for (let tick = first; tick <= last; tick += step) ticks.push(tick);
  const end = ticks.at(-1);
  if (end !== undefined && end !== last) {
    if (last - end < step * 0.6) ticks.pop();
    ticks.push(last);
  }
  return ticks;
}

/** The x that exists in a series and is closest to a place. */
export function nearest(series: readonly Series[], x: number): number | null {
  let best: number | null = null;
  for (const item of series) {
    for (const point of item.points) {
      if (best === null || Math.abs(point[0] - x) < Math.abs(best - x)) best = point[0];
    }
  }
  return best;
}

/** The numbers as a table: one row for an x, one column for a series; the latest rows and the first columns of very many. */
export function tableOf(series: readonly Series[]) {
  const shown = series.slice(0, MOST_COLUMNS);
  const byX = new Map<number, (number | null)[]>();
  shown.forEach((item, column) => {
    for (const [x, y] of item.points) {
      let row = byX.get(x);
      if (!row) {
        row = shown.map(() => null);
        byX.set(x, row);
      }
      row[column] = y;
    }
  });
  const rows = [...byX].toSorted(([a], [b]) => a - b).map(([x, values]) => ({ x, values }));
  return {
    names: shown.map(({ id, name, mark }) => ({ id, name, mark })),
    rows: rows.slice(-MOST_ROWS),
    isCut: rows.length > MOST_ROWS || series.length > shown.length,
  };
}
