import { describe, expect, it } from "vitest";
import { EMPTY, problemsOf, quoted, requestOf, type Dataset, type Draft } from "./draft";

const dataset: Dataset = { id: 7, name: "rows.csv", rows: 100, columns: ["a"], delimiter: ",", bytes: 10, sha256: "", warnings: [], created_at: "" };
const full: Draft = { ...EMPTY, title: "t", script: "x", dataset };

describe("problemsOf", () => {
  it("names what is missing", () => {
    expect(Object.keys(problemsOf(EMPTY)).toSorted()).toEqual(["dataset", "script", "title"]);
    expect(problemsOf(full)).toEqual({});
  });

  it.each([
    ["rounds", "0"],
    ["rounds", "2.5"],
    ["chunks", ""],
    ["chunks", "101"],
    ["hours", "169"],
    ["minUpdates", "6"],
    ["seed", "-1"],
    ["ramGib", "much"],
    ["hyperparameters", "[1]"],
    ["hyperparameters", "{"],
  ])("refuses %s = %j", (field, value) => {
    expect(problemsOf({ ...full, [field]: value })).toHaveProperty(field);
  });
});

describe("requestOf", () => {
  it("turns text into numbers and hours into seconds", () => {
    const request = requestOf({ ...full, hours: "1.5", rounds: "2", hyperparameters: '{"epochs": 3}', ramGib: "4", needsGpu: true });
    expect(request).toMatchObject({ dataset_id: 7, rounds: 2, chunks: 5, time_limit_s: 5400, hyperparameters: { epochs: 3 } });
    expect(request.needs).toEqual({ gpu: true, ram_bytes: 4 * 2 ** 30, vram_bytes: 0 });
  });
});

describe("quoted", () => {
  it("leaves plain arguments and guards the others", () => {
    expect(["--epochs", "a b", "it's"].map(quoted)).toEqual(["--epochs", "'a b'", `'it'"'"'s'`]);
  });
});
