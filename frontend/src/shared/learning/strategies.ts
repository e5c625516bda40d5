import type { NumberOption } from "./options";

export interface Strategy {
  name: string;
  label: string;
  /** When to choose it. */
  when: string;
  options: readonly NumberOption[];
  /** With fewer chunks it means nothing. `f` is the number of wrong updates that it shall withstand. */
  leastChunks?: (f: number) => number;
  leastRounds?: number;
}

const MOMENTUM = { usual: 0.9, low: 0, high: 1, isBelowHigh: true } as const;
const RATE = { usual: 1, low: 0, high: 10, isAboveLow: true } as const;

const adaptive = (eta: number): readonly NumberOption[] => [
  { ...RATE, name: "eta", label: "Server learning rate (eta)", hint: "How far the model goes in each round", usual: eta },
  { name: "tau", label: "Steadiness (tau)", hint: "The larger, the more alike the steps of all parameters", usual: 0.001, low: 0, high: 1, isAboveLow: true },
  { ...MOMENTUM, name: "beta1", label: "Momentum (beta1)", hint: "How much of the direction is kept from round to round" },
  { ...MOMENTUM, name: "beta2", label: "Memory (beta2)", hint: "How slowly the step sizes change", usual: 0.99 },
];

const WRONG: readonly NumberOption[] = [
  { name: "f", label: "Wrong updates to withstand (f)", hint: "Of the updates of one round", usual: 1, low: 0, high: 10_000, isWhole: true },
];

/** The server's strategies, by what they are good for. */
export const STRATEGY_GROUPS: readonly { title: string; strategies: readonly Strategy[] }[] = [
  {
    title: "Plain",
    strategies: [{ name: "fedavg", label: "FedAvg", when: "For most jobs: the average of all updates, weighted by their rows.", options: [] }],
  },
  {
    title: "For uneven data",
    strategies: [
      {
        name: "fedprox",
        label: "FedProx",
        when: "When chunks differ much: the script's loss holds each update near the model that the round began with.",
        options: [{ name: "mu", label: "Pull towards the global model (mu)", hint: "0 is plain averaging; the larger, the less the updates drift apart", usual: 0.01, low: 0, high: 1000 }],
      },
      {
        name: "fedavgm",
        label: "FedAvgM",
        when: "When the model swings from round to round: momentum steadies its way.",
        options: [
          { ...RATE, name: "server_lr", label: "Server learning rate", hint: "1 goes all the way to the average" },
          { ...MOMENTUM, name: "momentum", label: "Momentum", hint: "How much of the direction is kept from round to round" },
        ],
      },
      { name: "fedadam", label: "FedAdam", when: "When some parameters move much and others hardly: each one gets a step size of its own.", options: adaptive(0.1) },
      { name: "fedyogi", label: "FedYogi", when: "When FedAdam is unsteady: its step sizes change more gently.", options: adaptive(0.01) },
      { name: "fedadagrad", label: "FedAdagrad", when: "When some features are rare: steps shrink as training goes on, least where little was learned so far.", options: adaptive(0.1) },
    ],
  },
  {
    title: "Against wrong updates",
    strategies: [
      { name: "fedmedian", label: "FedMedian", when: "When fewer than half of the updates may be far off: the median of each parameter counts.", options: [] },
      {
        name: "fedtrimmedavg",
        label: "FedTrimmedAvg",
        when: "When a few updates may be far off: the highest and lowest values are left out, the rest is averaged.",
        options: [{ name: "trim", label: "Share left out at each end", hint: "Of the updates, for each parameter", usual: 0.2, low: 0, high: 0.5, isBelowHigh: true }],
      },
      {
        name: "krum",
        label: "Krum",
        when: "When you know how many machines may send anything at all: the one update nearest to the others is taken.",
        options: WRONG,
        leastChunks: (f) => 2 * f + 3,
      },
      {
        name: "multikrum",
        label: "Multi-Krum",
        when: "As Krum, but averages all updates that look right, so that less of the work is thrown away.",
        options: WRONG,
        leastChunks: (f) => 2 * f + 3,
      },
      {
        name: "bulyan",
        label: "Bulyan",
        when: "Against wrong updates that hide near the others: the strictest of all, and it needs many chunks.",
        options: WRONG,
        leastChunks: (f) => 4 * f + 3,
      },
    ],
  },
  {
    title: "Few exchanges",
    strategies: [
      {
        name: "diloco",
        label: "DiLoCo",
        when: "For large models: each machine trains long by itself, and momentum joins what they found.",
        options: [
          { ...RATE, name: "outer_lr", label: "Outer learning rate", hint: "1 goes all the way to the average", usual: 0.7 },
          { ...MOMENTUM, name: "momentum", label: "Momentum", hint: "How much of the direction is kept from round to round" },
          { name: "local_steps", label: "Local steps (H)", hint: "Optimizer steps that the script takes in each round", usual: 500, low: 1, high: 1_000_000, isWhole: true },
        ],
        leastRounds: 2,
      },
    ],
  },
];

const BY_NAME = new Map(STRATEGY_GROUPS.flatMap((group) => group.strategies).map((strategy) => [strategy.name, strategy]));

/** Undefined for one that a newer server knows and this page does not. */
export const strategyCalled = (name: string): Strategy | undefined => BY_NAME.get(name);
