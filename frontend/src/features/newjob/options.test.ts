import { describe, expect, it } from "vitest";
import { PARTITIONERS } from "@/shared/learning/partitioners";
import { STRATEGY_GROUPS } from "@/shared/learning/strategies";
import { EMPTY, problemsOf, requestOf, type Dataset, type Draft } from "./draft";
import { misfits, optionFields, textsOf } from "./options";

const dataset: Dataset = { id: 7, name: "rows.csv", rows: 100, columns: ["a", "species"], delimiter: ",", bytes: 10, sha256: "", warnings: [], created_at: "" };
const full: Draft = { ...EMPTY, title: "t", script: "x", dataset };
const learning = (strategy: string, strategyOptions: Draft["strategyOptions"] = {}, more: Partial<Draft> = {}): Draft => ({ ...full, strategy, strategyOptions, ...more });
const dealing = (partitioner: string, partitionerOptions: Draft["partitionerOptions"] = {}, more: Partial<Draft> = {}): Draft => ({ ...full, partitioner, partitionerOptions, ...more });

describe("what is sent", () => {
  it("names the defaults and leaves their options out", () => {
    expect(requestOf(full)).toMatchObject({ strategy: "fedavg", strategy_options: {}, partitioner: "iid", partitioner_options: {} });
  });

  it.each([
    [learning("fedavgm", { momentum: "0.5" }), { momentum: 0.5 }],
    [learning("fedavgm", { momentum: " 0.90 ", server_lr: "" }), {}],
    [learning("fedavgm", { momentum: "0", server_lr: "2" }), { momentum: 0, server_lr: 2 }],
    [learning("fedyogi", { eta: "0.1" }), { eta: 0.1 }],
    [learning("fedadam", { eta: "0.1", tau: "1e-4" }), { tau: 0.0001 }],
    [learning("fedmedian", { f: "2" }), {}],
  ])("of a strategy: what differs from its defaults, %#", (draft, options) => {
    expect(requestOf(draft).strategy_options).toEqual(options);
  });

  it.each([
    [dealing("stratified", { column: "species", alpha: "3" }), { column: "species" }],
    [dealing("dirichlet", { column: "a", alpha: "0.1" }), { column: "a", alpha: 0.1 }],
    [dealing("shards", { column: "a", shards_per_chunk: "2" }), { column: "a" }],
    [dealing("sizes", { proportions: "5, 3;1 1  0.5" }), { proportions: [5, 3, 1, 1, 0.5] }],
    [dealing("contiguous", { column: "a" }), {}],
  ])("of a partitioner: its column, its proportions, what differs, %#", (draft, options) => {
    expect(requestOf(draft).partitioner_options).toEqual(options);
  });

  it("is the same again for a job that is repeated", () => {
    const [krum, dirichlet] = [STRATEGY_GROUPS[2]?.strategies[2], PARTITIONERS[3]];
    expect([krum?.name, dirichlet?.name]).toEqual(["krum", "dirichlet"]);
    expect(textsOf(krum?.options, { f: 1 })).toEqual({});
    expect(textsOf(krum?.options, { f: 0 })).toEqual({ f: "0" });
    expect(textsOf(dirichlet?.options, { column: "a", alpha: 0.5 })).toEqual({ column: "a" });
    expect(requestOf(dealing("sizes", textsOf([], { proportions: [2, 1, 1, 1, 1] }))).partitioner_options).toEqual({ proportions: [2, 1, 1, 1, 1] });
  });
});

describe("what the server would refuse", () => {
  it("is nothing for any strategy on enough chunks", () => {
    for (const { name } of STRATEGY_GROUPS.flatMap((group) => group.strategies)) expect(problemsOf(learning(name, {}, { chunks: "7" }))).toEqual({});
  });

  it.each([
    ["krum", "", 5],
    ["krum", "2", 7],
    ["krum", "0", 3],
    ["multikrum", "1", 5],
    ["bulyan", "", 7],
    ["bulyan", "2", 11],
  ])("%s with f = %j needs %i chunks", (strategy, f, least) => {
    expect(misfits(learning(strategy, { f }, { chunks: String(least) }))).toEqual({});
    const problems = misfits(learning(strategy, { f }, { chunks: String(least - 1) }));
    expect(problems["strategy_options.f"]).toContain(`${least} chunks or more; the job has ${least - 1}`);
  });

  it("asks nothing of f while the chunks are being typed", () => {
    expect(misfits(learning("krum", {}, { chunks: "" }))).toEqual({});
  });

  it("is diloco with one round", () => {
    expect(misfits(learning("diloco", {}, { rounds: "1" })).rounds).toContain("2 rounds or more");
    expect(misfits(learning("diloco", {}, { rounds: "2" }))).toEqual({});
    expect(misfits(learning("diloco", {}, { rounds: "" }))).toEqual({});
    expect(misfits(learning("fedavg", {}, { rounds: "1" }))).toEqual({});
  });

  it.each([
    ["fedavgm", "momentum", "1", "A number from 0, below 1"],
    ["fedavgm", "server_lr", "0", "A number above 0, up to 10"],
    ["fedprox", "mu", "1,5", "A number from 0 to 1,000"],
    ["fedtrimmedavg", "trim", "0.5", "A number from 0, below 0.5"],
    ["krum", "f", "1.5", "A whole number from 0 to 10,000"],
    ["diloco", "local_steps", "0", "A whole number from 1 to 1,000,000"],
  ])("%s with %s = %j", (strategy, option, text, words) => {
    expect(problemsOf(learning(strategy, { [option]: text }))).toEqual({ [`strategy_options.${option}`]: words });
  });

  it.each([
    [dealing("stratified"), "column", "Choose a column"],
    [dealing("by_column", { column: "gone" }), "column", "no such column"],
    [dealing("dirichlet", { column: "a", alpha: "0" }), "alpha", "above 0"],
    [dealing("shards", { column: "a", shards_per_chunk: "30" }), "shards_per_chunk", "5 × 30 shards"],
    [dealing("sizes", { proportions: "2, 1" }), "proportions", "2 numbers for 5 chunks"],
    [dealing("sizes"), "proportions", "Give a number"],
    [dealing("sizes", { proportions: "1 1 1 1 0" }), "proportions", "above 0"],
    [dealing("sizes", { proportions: "1 1 1 1 x" }), "proportions", "above 0"],
  ])("of a deal, %#: %o", (draft, option, words) => {
    const problems = problemsOf(draft);
    expect(Object.keys(problems)).toEqual([`partitioner_options.${option}`]);
    expect(problems[`partitioner_options.${option}`]).toContain(words);
  });

  it("has a field here, in the server's words", () => {
    expect(optionFields({ ...learning("krum"), partitioner: "dirichlet" })).toEqual(["strategy_options.f", "partitioner_options.alpha", "partitioner_options.column"]);
    expect(optionFields(dealing("sizes"))).toEqual(["partitioner_options.proportions"]);
  });
});
