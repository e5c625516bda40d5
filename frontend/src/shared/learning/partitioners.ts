import type { NumberOption } from "./options";

export interface Partitioner {
  name: string;
  label: string;
  /** What it does, and when to choose it. */
  when: string;
  /** How it may hurt. */
  warning?: string;
  takesColumn?: true;
  takesProportions?: true;
  options: readonly NumberOption[];
}

/** The server's ways to deal rows to chunks. */
export const PARTITIONERS: readonly Partitioner[] = [
  { name: "iid", label: "At random", when: "For most jobs: the rows are shuffled, so that each chunk is a fair sample.", options: [] },
  {
    name: "contiguous",
    label: "In the file's order",
    when: "For rows whose order matters, such as a time series: the file is cut into equal pieces.",
    warning: "If the file is sorted, each chunk sees only a part of what there is; averaging suffers.",
    options: [],
  },
  { name: "stratified", label: "Stratified", when: "For rare classes: each chunk gets its share of every value of a column.", takesColumn: true, options: [] },
  {
    name: "dirichlet",
    label: "Uneven (Dirichlet)",
    when: "For experiments: each chunk gets the values of a column in proportions drawn by chance.",
    warning: "The chunks differ on purpose, in what they hold and in size; averaging suffers, the more the smaller alpha is.",
    takesColumn: true,
    options: [{ name: "alpha", label: "Evenness (alpha)", hint: "Small: each chunk has few of the values; large: all chunks are alike", usual: 0.5, low: 0, high: 1000, isAboveLow: true }],
  },
  {
    name: "shards",
    label: "Shards",
    when: "For experiments: rows sorted by a column are cut into shards, and each chunk gets some of them.",
    warning: "Each chunk sees only a few of the column's values; averaging suffers.",
    takesColumn: true,
    options: [{ name: "shards_per_chunk", label: "Shards for each chunk", hint: "The fewer, the less alike the chunks are", usual: 2, low: 1, high: 1000, isWhole: true }],
  },
  {
    name: "by_column",
    label: "One group a chunk",
    when: "For natural groups, such as hospitals or years: all rows with the same value of a column go to one chunk.",
    warning: "The column must hold exactly as many different values as there are chunks. Where the groups differ, averaging suffers.",
    takesColumn: true,
    options: [],
  },
  {
    name: "sizes",
    label: "By sizes",
    when: "For experiments with unequal shares: the rows are shuffled and dealt in the proportions that you give.",
    warning: "A round lasts as long as its largest chunk does.",
    takesProportions: true,
    options: [],
  },
];

const BY_NAME = new Map(PARTITIONERS.map((partitioner) => [partitioner.name, partitioner]));

/** Undefined for one that a newer server knows and this page does not. */
export const partitionerCalled = (name: string): Partitioner | undefined => BY_NAME.get(name);
