import type { NumberOption } from "./options";

/** A model that the server trains without a script. */
export interface Recipe {
  name: string;
  label: string;
  /** What it is, and when to choose it. */
  when: string;
  options: readonly NumberOption[];
  /** Hidden layers and an activation between them. */
  hasLayers?: true;
}

const COMMON: readonly NumberOption[] = [
  { name: "learning_rate", label: "Learning rate", hint: "How far each step goes; smaller when the loss jumps, larger when it crawls", usual: 0.001, low: 0, high: 10, isAboveLow: true },
  { name: "epochs", label: "Epochs", hint: "How often a machine goes through its rows in each round", usual: 10, low: 1, high: 1000, isWhole: true },
  { name: "batch_size", label: "Batch size", hint: "Rows for one step", usual: 32, low: 1, high: 65_536, isWhole: true },
];

export const RECIPES: readonly Recipe[] = [
  { name: "mlp", label: "Neural network (MLP)", when: "For most tables: learns to tell classes apart, also where the border between them is curved.", options: COMMON, hasLayers: true },
  { name: "cnn", label: "Picture network (CNN)", when: "For pictures, one pixel a column: sees what lies side by side. Trains longer.", options: COMMON, hasLayers: true },
  { name: "logistic_regression", label: "Logistic regression", when: "For classes, when you want the simplest model first, one weight a column.", options: COMMON },
  { name: "linear_regression", label: "Linear regression", when: "For predicting a number, such as a price or a temperature.", options: COMMON },
];

export const ACTIVATIONS = ["relu", "tanh", "sigmoid", "gelu", "leaky_relu"] as const;
export const USUAL_LAYERS = "128, 64";
export const MOST_LAYERS = 10;
export const MOST_NEURONS = 4096;

/** Datasets that the server brings along. */
export const OFFERED: readonly { name: string; label: string; what: string }[] = [
  { name: "mnist", label: "MNIST", what: "60,000 handwritten digits of 28 × 28 pixels; where the server has no internet, 5,000 of them" },
  { name: "fashion_mnist", label: "Fashion-MNIST", what: "60,000 pictures of clothes, 10 kinds, 28 × 28 pixels; needs the server to reach its mirror" },
  { name: "synthetic", label: "Synthetic", what: "10,000 made-up rows of 784 numbers in 10 classes: for trying things out" },
];

const BY_NAME = new Map(RECIPES.map((recipe) => [recipe.name, recipe]));

/** Undefined for one that a newer server knows and this page does not. */
export const recipeCalled = (name: string): Recipe | undefined => BY_NAME.get(name);

/** "128, 64" as numbers; null where it holds something else. An empty text means no hidden layer. */
export function layersOf(text: string): number[] | null {
  const parts = text.split(/[\s,;[\]]+/).filter(Boolean).map(Number);
  return parts.length <= MOST_LAYERS && parts.every((size) => Number.isInteger(size) && size >= 1 && size <= MOST_NEURONS) ? parts : null;
}
