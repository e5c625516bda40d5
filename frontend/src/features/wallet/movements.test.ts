import { describe, expect, test } from "vitest";
import { detailOf, jobOf, kindOf, linkOf, signed } from "./movements";

const movement = (reference: string, other: string, reason = "") => ({ reference, other, reason });

describe("movements in words", () => {
  test("kind by reference", () => {
    expect(["hold:3", "subtask:9", "attempt:9", "release:3", "release:3:2", "welcome:1", "grant:ab", "constructor:1", ""].map((reference) => kindOf({ reference }))).toEqual([
      "hold",
      "earned",
      "earned",
      "returned",
      "returned",
      "welcome",
      "granted",
      "other",
      "other",
    ]);
  });

  test("job of an escrow, of nothing else", () => {
    expect(jobOf({ other: "escrow:12" })).toBe(12);
    expect(jobOf({ other: "mint" })).toBeNull();
    expect(jobOf({ other: "wallet:12" })).toBeNull();
  });

  test("signed amounts are as wide as each other", () => {
    expect(signed(5)).toBe("+5");
    expect(signed(-12345)).toBe("−12,345");
  });

  test("the reason does not repeat the job", () => {
    expect(detailOf(movement("hold:3", "escrow:3", "job 3: My job 3: again"))).toBe("My job 3: again");
    expect(detailOf(movement("subtask:9", "escrow:3", "job 3, round 1, chunk 0"))).toBe("round 1, chunk 0");
    expect(detailOf(movement("release:3", "escrow:3", "job 3 completed: unused credits"))).toBe("completed: unused credits");
    expect(detailOf(movement("grant:1", "mint", "for the workshop"))).toBe("for the workshop");
    expect(detailOf(movement("welcome:1", "mint", "welcome"))).toBe("");
    expect(detailOf(movement("hold:3", "escrow:3", "job 31: other"))).toBe("job 31: other");
  });

  test("each side has its own place to look at a job", () => {
    expect(linkOf(movement("hold:3", "escrow:3"))).toBe("/app/jobs/3");
    expect(linkOf(movement("release:3", "escrow:3"))).toBe("/app/jobs/3");
    expect(linkOf(movement("subtask:8", "escrow:3"))).toBe("/app/machines?job=3");
    expect(linkOf(movement("welcome:8", "mint"))).toBeNull();
  });
});
