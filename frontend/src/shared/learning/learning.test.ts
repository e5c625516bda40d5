import { describe, expect, it } from "vitest";
import partitionerSource from "../../../../backend/gridx/datasets/partitioner_options.py?raw";
import recipeSource from "../../../../backend/gridx/jobs/recipes/options.py?raw";
import catalogueSource from "../../../../backend/gridx/datasets/catalogue.py?raw";
import strategySource from "../../../../backend/gridx/aggregation/strategies/options.py?raw";
import { isWithin, rangeInWords, type NumberOption } from "./options";
import { PARTITIONERS } from "./partitioners";
import { ACTIVATIONS, layersOf, OFFERED, RECIPES, USUAL_LAYERS } from "./recipes";
import { STRATEGY_GROUPS } from "./strategies";
import { partitionerInWords, strategyInWords } from "./words";

/** Name -> the options that have a default, as the server's classes say. */
function defaultsIn(source: string): Record<string, Record<string, number>> {
  const classes: Record<string, Record<string, number>> = {};
  for (const [, name = "", base = "", body = ""] of source.matchAll(/^class (\w+)\((\w+)\):\n((?: {4}.*\n|\n)*)/gm)) {
    const own = [...body.matchAll(/^ {4}(\w+): .* = ([\d.e-]+)$/gm)].map(([, option = "", value]) => [option, Number(value)] as const);
    classes[name] = { ...classes[base], ...Object.fromEntries(own) };
  }
  return Object.fromEntries([...source.matchAll(/^ {4}"(\w+)": (\w+),$/gm)].map(([, name = "", options = ""]) => [name, classes[options] ?? {}]));
}

const usual = (items: readonly { name: string; options: readonly NumberOption[] }[]) =>
  Object.fromEntries(items.map((item) => [item.name, Object.fromEntries(item.options.map((option) => [option.name, option.usual]))]));

describe("the names and defaults", () => {
  it("are the server's for strategies", () => {
    const server = defaultsIn(strategySource);
    expect(Object.keys(server)).toHaveLength(12);
    expect(usual(STRATEGY_GROUPS.flatMap((group) => group.strategies))).toEqual(server);
  });

  it("are the server's for partitioners", () => {
    const server = defaultsIn(partitionerSource);
    expect(Object.keys(server)).toHaveLength(7);
    expect(usual(PARTITIONERS)).toEqual(server);
  });

  it("are the server's for models without code", () => {
    const server = defaultsIn(recipeSource);
    expect(Object.keys(server)).toHaveLength(4);
    expect(usual(RECIPES)).toEqual(server);
    expect(recipeSource).toContain(`Literal[${ACTIVATIONS.map((name) => `"${name}"`).join(", ")}]`);
    expect(recipeSource).toContain(`= [${USUAL_LAYERS}]`);
    expect(catalogueSource).toContain(`(${OFFERED.map(({ name }) => `"${name}"`).join(", ")})`);
  });

  it("lie within their ranges", () => {
    const options = [...STRATEGY_GROUPS.flatMap((group) => group.strategies), ...PARTITIONERS, ...RECIPES].flatMap((item) => item.options);
    expect(options.filter((option) => !isWithin(option, option.usual))).toEqual([]);
  });
});

describe("a range", () => {
  const base: NumberOption = { name: "x", label: "", hint: "", usual: 1, low: 0, high: 1000 };

  it.each([
    [{}, "from 0 to 1,000", [0, 1000, 0.5], [-1, 1001, Number.NaN]],
    [{ isAboveLow: true }, "above 0, up to 1,000", [0.001, 1000], [0]],
    [{ isBelowHigh: true, high: 0.5 }, "from 0, below 0.5", [0, 0.49], [0.5]],
    [{ isWhole: true }, "from 0 to 1,000", [3], [2.5]],
  ] as const)("%j is told and kept", (change, words, inside, outside) => {
    const option = { ...base, ...change };
    expect(rangeInWords(option)).toBe(words);
    expect(inside.every((value) => isWithin(option, value))).toBe(true);
    expect(outside.some((value) => isWithin(option, value))).toBe(false);
  });
});

describe("hidden layers", () => {
  it.each([["128, 64", [128, 64]], ["[8 4]", [8, 4]], ["", []], ["0", null], ["2.5", null], ["many", null], ["1,".repeat(11), null]])("%j", (text, sizes) => {
    expect(layersOf(text)).toEqual(sizes);
  });
});

describe("words for a choice", () => {
  it("name a strategy with its options", () => {
    expect(strategyInWords("fedavg", {})).toBe("FedAvg");
    expect(strategyInWords("fedavgm", { server_lr: 1, momentum: 0.5 })).toBe("FedAvgM: server_lr 1, momentum 0.5");
    expect(strategyInWords("newer", { x: "\u202Ey" })).toBe('newer: x "y"');
  });

  it("name a partitioner with its column, proportions and options", () => {
    expect(partitionerInWords("iid", {})).toBe("At random");
    expect(partitionerInWords("stratified", { column: "spe\u202Ecies" })).toBe("Stratified by species");
    expect(partitionerInWords("dirichlet", { column: "y", alpha: 0.5 })).toBe("Uneven (Dirichlet) by y: alpha 0.5");
    expect(partitionerInWords("sizes", { proportions: [2, 1, 1] })).toBe("By sizes 2 : 1 : 1");
  });
});
