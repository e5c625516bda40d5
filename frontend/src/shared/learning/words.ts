import { plainName } from "@/shared/format/text";
import { partitionerCalled } from "./partitioners";
import { strategyCalled } from "./strategies";

type Options = Record<string, unknown>;

export const strategyLabel = (name: string): string => strategyCalled(name)?.label ?? plainName(name);

/** "FedAvgM: server_lr 1, momentum 0.5" */
export function strategyInWords(name: string, options: Options): string {
  return withOptions(strategyLabel(name), options);
}

/** "Stratified by species"; "Uneven (Dirichlet) by species: alpha 0.5"; "By sizes 2 : 1 : 1" */
export function partitionerInWords(name: string, { column, proportions, ...options }: Options): string {
  let words = partitionerCalled(name)?.label ?? name;
  if (typeof column === "string" && column) words += ` by ${column}`;
  if (Array.isArray(proportions) && proportions.length > 0) words += ` ${proportions.join(" : ")}`;
  return plainName(withOptions(words, options));
}

function withOptions(words: string, options: Options): string {
  const named = Object.entries(options).map(([name, value]) => `${name} ${typeof value === "number" ? value : JSON.stringify(value)}`);
  return named.length > 0 ? `${words}: ${plainName(named.join(", "))}` : words;
}
