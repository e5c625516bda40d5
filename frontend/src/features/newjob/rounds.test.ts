import { describe, expect, it } from "vitest";
import type { Body } from "@/shared/api/types";
import { EMPTY, planOf, problemsOf, requestOf, type Dataset, type Draft } from "./draft";
import { misfits } from "./options";
import { priceOf } from "./price";
import { modelFileOf, roundProblems, roundsDraft, roundsInWords, startIn, takingPart } from "./rounds";

const dataset: Dataset = { id: 7, name: "rows.csv", rows: 100, columns: ["a"], delimiter: ",", bytes: 10, sha256: "", warnings: [], created_at: "" };
const full: Draft = { ...EMPTY, title: "t", script: "x", dataset };
const model = new File(["x"], "model.pth");

describe("what is sent", () => {
  it("of an untouched form are the server's defaults", () => {
    expect(requestOf(full)).toMatchObject({ held_out: 0, evaluations: 2, early_stopping: null, fraction: 1, round_deadline_s: null, backups: true, min_updates: null, initial_job_id: null, initial_round: null });
  });

  it("turns percent into shares and minutes into seconds", () => {
    const request = requestOf({ ...full, heldOut: "12.5", evaluations: "1", fraction: "60", deadline: "1.5", backups: false, minUpdates: "2" });
    expect(request).toMatchObject({ held_out: 0.125, evaluations: 1, fraction: 0.6, round_deadline_s: 90, backups: false, min_updates: 2 });
  });

  it("stops early only where rows are held out", () => {
    const stopping: Draft = { ...full, stopsEarly: true, patience: "4", minDelta: "0.01", monitor: "loss" };
    expect(requestOf(stopping).early_stopping).toBeNull();
    expect(requestOf({ ...stopping, heldOut: "10" }).early_stopping).toEqual({ patience: 4, min_delta: 0.01, monitor: "loss" });
    expect(requestOf({ ...stopping, heldOut: "10", minDelta: "", monitor: "" }).early_stopping).toEqual({ patience: 4, min_delta: 0, monitor: null });
  });

  it("names a job to start from only when that is chosen", () => {
    const named: Draft = { ...full, initialJob: "12", initialRound: "3" };
    expect(requestOf(named)).toMatchObject({ initial_job_id: null, initial_round: null });
    expect(requestOf({ ...named, start: "job" })).toMatchObject({ initial_job_id: 12, initial_round: 3 });
    expect(requestOf({ ...named, start: "job", initialRound: "" })).toMatchObject({ initial_job_id: 12, initial_round: null });
  });

  it("has no model file in a job without a script", () => {
    expect(modelFileOf({ ...full, initialModel: model })).toBeNull();
    expect(modelFileOf({ ...full, start: "file", initialModel: model })).toBe(model);
    expect(modelFileOf({ ...full, start: "file", initialModel: model, way: "model" })).toBeNull();
  });
});

describe("what the server would refuse", () => {
  it.each([
    ["heldOut", "51", "0 to 50"],
    ["heldOut", "-1", "0 to 50"],
    ["heldOut", "ten", "0 to 50"],
    ["fraction", "0", "above 0"],
    ["fraction", "101", "up to 100"],
    ["minUpdates", "6", "from 1 to 5"],
    ["minUpdates", "1.5", "from 1 to 5"],
    ["deadline", "0.1", "0.2 to 10,080"],
    ["deadline", "10081", "0.2 to 10,080"],
  ] as const)("is %s = %j", (field, text, words) => {
    expect(roundProblems({ ...full, [field]: text })).toEqual({ [field]: expect.stringContaining(words) });
  });

  it("is a wrong patience only where it counts", () => {
    expect(roundProblems({ ...full, stopsEarly: true, patience: "0" })).toEqual({});
    expect(roundProblems({ ...full, stopsEarly: true, patience: "0", heldOut: "10" })).toHaveProperty("patience");
    expect(roundProblems({ ...full, stopsEarly: true, minDelta: "-1", heldOut: "10" })).toHaveProperty("minDelta");
  });

  it("is more updates than a round has chunks", () => {
    expect(roundProblems({ ...full, fraction: "40", minUpdates: "3" }).minUpdates).toContain("from 1 to 2");
    expect(roundProblems({ ...full, fraction: "40", minUpdates: "2" })).toEqual({});
  });

  it("is more chunks than rows that are not held out", () => {
    expect(problemsOf({ ...full, heldOut: "50", chunks: "50" })).toEqual({});
    expect(problemsOf({ ...full, heldOut: "50", chunks: "51" }).chunks).toContain("50 of them held out");
  });

  it("is a strategy with too few chunks in a round", () => {
    expect(misfits({ ...full, strategy: "krum", chunks: "10", fraction: "40" })["strategy_options.f"]).toContain("5 chunks or more; a round has 4");
    expect(misfits({ ...full, strategy: "krum", chunks: "10", fraction: "50" })).toEqual({});
  });

  it("is a start without its job or its file", () => {
    expect(roundProblems({ ...full, start: "job" })).toHaveProperty("initialJob");
    expect(roundProblems({ ...full, start: "job", initialJob: "3", initialRound: "-1" })).toHaveProperty("initialRound");
    expect(roundProblems({ ...full, start: "file" })).toHaveProperty("initialModel");
    expect(roundProblems({ ...full, start: "file", initialModel: model })).toEqual({});
  });
});

describe("the price", () => {
  it("counts the chunks of a round, and evaluations where rows are held out", () => {
    expect(priceOf(planOf(full))).toBe(15);
    expect(priceOf(planOf({ ...full, heldOut: "10" }))).toBe(21);
    expect(priceOf(planOf({ ...full, heldOut: "10", evaluations: "1", fraction: "40", hours: "2" }))).toBe(2 * 3 * (2 + 1));
    expect(priceOf(planOf({ ...full, chunks: "" }))).toBeNaN();
  });
});

describe("a job that is repeated", () => {
  const job = {
    chunks: 10,
    chunks_per_round: 3,
    min_updates: 2,
    held_out_share: 0.15,
    evaluations: 1,
    early_stopping: { patience: 2, min_delta: 0, monitor: "accuracy" },
    round_deadline_s: 90,
    backups: false,
  } as Body<"JobView">;

  it("asks for the same again", () => {
    const again: Draft = { ...full, chunks: "10", ...roundsDraft(job) };
    expect(takingPart(again)).toBe(3);
    expect(requestOf(again)).toMatchObject({ held_out: 0.15, evaluations: 1, early_stopping: job.early_stopping, round_deadline_s: 90, backups: false, min_updates: 2 });
  });

  it("asks for nothing when it did not", () => {
    const plain = { ...job, chunks_per_round: 10, min_updates: 10, held_out_share: 0, evaluations: 0, early_stopping: null, round_deadline_s: null, backups: true };
    expect(roundsInWords({ ...full, ...roundsDraft(plain) })).toBe("No held-out rows, all chunks in each round");
    expect({ ...EMPTY, ...roundsDraft(plain) }).toEqual(EMPTY);
  });

  it("starts from where it started, not from where it ended", () => {
    const trainedOn: Draft = { ...full, ...roundsDraft({ ...job, id: 7, has_initial_model: true }) };
    expect(requestOf(trainedOn)).toMatchObject({ initial_job_id: 7, initial_round: 0 });
    expect(roundProblems(trainedOn)).toEqual({});
  });
});

describe("the address", () => {
  it("says where training starts, and nonsense in it says nothing", () => {
    expect(startIn(new URLSearchParams("from=7&initial_job_id=7&initial_round=3"))).toEqual({ start: "job", initialJob: "7", initialRound: "3" });
    expect(startIn(new URLSearchParams("initial_job_id=7"))).toEqual({ start: "job", initialJob: "7", initialRound: "" });
    expect(startIn(new URLSearchParams("initial_job_id=7&initial_round=0"))).toEqual({ start: "job", initialJob: "7", initialRound: "0" });
    expect(startIn(new URLSearchParams("initial_job_id=x&initial_round=3"))).toEqual({});
    expect(startIn(new URLSearchParams("initial_job_id=0"))).toEqual({});
  });
});

it("tells what is chosen", () => {
  expect(roundsInWords({ ...full, heldOut: "20", stopsEarly: true, fraction: "40", deadline: "5", start: "job", initialJob: "3", initialRound: "2" })).toBe(
    "20 % of the rows held out, stops early, 2 of 5 chunks in a round, deadline 5 min, from job 3, round 2",
  );
});
