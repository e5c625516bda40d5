import { describe, expect, it } from "vitest";
import { chunksInRound, priceInWords, priceOf, unitsOf } from "./price";

describe("price", () => {
  it.each([[10, 1], [3600, 1], [3601, 2], [7200, 2]])("counts %i s as %i units", (seconds, units) => {
    expect(unitsOf(seconds)).toBe(units);
  });

  it("is units x rounds x (chunks of a round + evaluations)", () => {
    expect(priceOf({ chunks: 5, evaluations: 0, rounds: 1, timeLimitS: 3600 })).toBe(5);
    expect(priceOf({ chunks: 5, evaluations: 0, rounds: 4, timeLimitS: 5400 })).toBe(40);
    expect(priceOf({ chunks: 3, evaluations: 2, rounds: 4, timeLimitS: 3600 })).toBe(20);
  });

  it("says where it comes from", () => {
    expect(priceInWords({ chunks: 1, evaluations: 0, rounds: 3, timeLimitS: 3600 })).toBe("3 rounds × 1 chunk × 1 credit");
    expect(priceInWords({ chunks: 2, evaluations: 0, rounds: 1, timeLimitS: 7200 })).toBe("1 round × 2 chunks × 2 credits (up to 2 hours each)");
    expect(priceInWords({ chunks: 5, evaluations: 1, rounds: 2, timeLimitS: 60 })).toBe("2 rounds × (5 chunks + 1 evaluation) × 1 credit");
  });
});

describe("the chunks of a round", () => {
  // As Python rounds: halves to the even number.
  it.each([[5, 1, 5], [5, 0.5, 2], [7, 0.5, 4], [3, 0.5, 2], [5, 0.4, 2], [5, 0.01, 1], [10, 0.25, 2], [10, 0.35, 4]])("of %i at %f are %i", (chunks, fraction, taking) => {
    expect(chunksInRound(chunks, fraction)).toBe(taking);
  });
});
