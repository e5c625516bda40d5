import { describe, expect, it } from "vitest";
import { domainOf, nearest, tableOf, wholeTicks, type Series } from "./chartData";

const series = (id: string, ...points: [number, number][]): Series => ({ id, name: id, points });

describe("chartData", () => {
  it("spans all values, and is never without width", () => {
    expect(domainOf([series("a", [1, 2], [3, 4]), series("b", [2, 9])], 1)).toEqual([2, 9]);
    expect(domainOf([series("a", [1, 2])], 1)).toEqual([1.5, 2.5]);
    expect(domainOf([], 1)).toEqual([0, 1]);
  });

  it("has whole ticks with both ends", () => {
    expect(wholeTicks([1, 10], 5)[0]).toBe(1);
    expect(wholeTicks([1, 10], 5).at(-1)).toBe(10);
    expect(wholeTicks([1, 1], 5)).toEqual([1]);
  });

  it("finds the nearest place that has a value", () => {
    expect(nearest([series("a", [1, 0], [4, 0])], 2.6)).toBe(4);
    expect(nearest([], 1)).toBeNull();
  });

  it("makes a table, and bounds it", () => {
    expect(tableOf([series("a", [2, 1], [1, 0]), series("b", [2, 5])]).rows).toEqual([{ x: 1, values: [0, null] }, { x: 2, values: [1, 5] }]);
    const long = tableOf([series("a", ...Array.from({ length: 1000 }, (_, x): [number, number] => [x, x]))]);
    expect(long.rows).toHaveLength(120);
    expect(long.isCut).toBe(true);
  });
});
