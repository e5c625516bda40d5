import { describe, expect, it } from "vitest";
import { jobOf, roundOf } from "./fixtures";
import { secondsLeft, shareOf } from "./progress";

describe("shareOf", () => {
  it("is whole for a job that stopped early, and what was done of one that failed", () => {
    expect(shareOf(jobOf({ status: "COMPLETED", completed_subtasks: 2, total_subtasks: 6 }))).toBe(1);
    expect(shareOf(jobOf({ status: "FAILED", completed_subtasks: 3, total_subtasks: 6 }))).toBe(0.5);
  });
});

describe("secondsLeft", () => {
  it("counts the evaluation between two rounds", () => {
    const rounds = [roundOf(1), roundOf(2, { opened_at: "2026-01-01T00:01:30Z", closed_at: null })];
    expect(secondsLeft(jobOf({ rounds: 3, current_round: 2, round_list: rounds }))).toBe(180);
  });
});
