import { describe, expect, it } from "vitest";
import { countStates, filterJobs, readFilter } from "./filter";
import type { JobSummary } from "./queries";

const job = (id: number, status: string, title = "a title", dataset_name = "rows.csv"): JobSummary =>
  ({ id, status, title, dataset_name }) as JobSummary;
const jobs = [job(3, "RUNNING"), job(2, "COMPLETED", "Iris"), job(1, "FAILED", "x", "iris.csv"), job(23, "PROCESSING")];

describe("filterJobs", () => {
  it("finds by title, dataset and whole number", () => {
    expect(filterJobs(jobs, { state: "all", text: "IRIS " }).map((one) => one.id)).toEqual([2, 1]);
    expect(filterJobs(jobs, { state: "all", text: "3" }).map((one) => one.id)).toEqual([3]);
  });

  it("takes everything that has not ended as running", () => {
    expect(filterJobs(jobs, { state: "live", text: "" }).map((one) => one.id)).toEqual([3, 23]);
    expect(countStates(jobs)).toEqual({ all: 4, live: 2, COMPLETED: 1, FAILED: 1, CANCELLED: 0 });
  });

  it("reads an address and forgives nonsense in it", () => {
    expect(readFilter(new URLSearchParams("state=nonsense&q=a"))).toEqual({ state: "all", text: "a" });
  });
});
