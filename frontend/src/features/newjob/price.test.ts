import { describe, expect, it } from "vitest";
import { priceInWords, priceOf, unitsOf } from "./price";

describe("price", () => {
  it.each([[10, 1], [3600, 1], [3601, 2], [7200, 2]])("counts %i s as %i units", (seconds, units) => {
    expect(unitsOf(seconds)).toBe(units);
  });

  it("is units x rounds x chunks", () => {
    expect(priceOf({ chunks: 5, rounds: 1, timeLimitS: 3600 })).toBe(5);
    expect(priceOf({ chunks: 5, rounds: 4, timeLimitS: 5400 })).toBe(40);
  });

  it("says where it comes from", () => {
    expect(priceInWords({ chunks: 1, rounds: 3, timeLimitS: 3600 })).toBe("3 rounds × 1 chunk × 1 credit");
    expect(priceInWords({ chunks: 2, rounds: 1, timeLimitS: 7200 })).toBe("1 round × 2 chunks × 2 credits (up to 2 hours each)");
  });
});
