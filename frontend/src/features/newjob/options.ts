import { isWithin, rangeInWords, type NumberOption } from "@/shared/learning/options";
import { partitionerCalled } from "@/shared/learning/partitioners";
import { strategyCalled } from "@/shared/learning/strategies";
import { plural } from "@/shared/format/numbers";
import type { Draft, Errors } from "./draft";
import { isInStep, takingPart } from "./rounds";

/** Options as they are typed, by name. What is empty, or not there, is the server's default. */
export type Texts = Record<string, string>;
export type OptionField = `strategy_options.${string}` | `partitioner_options.${string}` | `hyperparameters.${string}`;

const partitionerField = (name: string): OptionField => `partitioner_options.${name}`;

/** The server's words for the fields of what is chosen. */
export function optionFields(draft: Draft): OptionField[] {
  const partitioner = partitionerCalled(draft.partitioner);
  return [
    ...(strategyCalled(draft.strategy)?.options ?? []).map((option): OptionField => `strategy_options.${option.name}`),
    ...(partitioner?.options ?? []).map((option) => partitionerField(option.name)),
    ...(partitioner?.takesColumn ? [partitionerField("column")] : []),
    ...(partitioner?.takesProportions ? [partitionerField("proportions")] : []),
  ];
}

/** The options to send: those that differ from the defaults. */
export function strategyOptionsOf(draft: Draft): Record<string, unknown> {
  return changed(strategyCalled(draft.strategy)?.options, draft.strategyOptions);
}

export function partitionerOptionsOf({ partitioner, partitionerOptions }: Draft): Record<string, unknown> {
  const chosen = partitionerCalled(partitioner);
  return {
    ...(chosen?.takesColumn && { column: partitionerOptions.column ?? "" }),
    ...(chosen?.takesProportions && { proportions: numbersOf(partitionerOptions.proportions) }),
    ...changed(chosen?.options, partitionerOptions),
  };
}

/** Options of a job as they would have been typed; its defaults stay empty. */
export function textsOf(known: readonly NumberOption[] = [], options: Record<string, unknown>): Texts {
  const texts: Texts = {};
  for (const [name, value] of Object.entries(options)) {
    if (Array.isArray(value)) texts[name] = value.join(", ");
    else if (value !== known.find((option) => option.name === name)?.usual) texts[name] = String(value);
  }
  return texts;
}

/** What is wrong with the options, each beside its field. */
export function optionProblems(draft: Draft): Errors {
  const found: Errors = misfits(draft);
  const partitioner = partitionerCalled(draft.partitioner);
  const texts = draft.partitionerOptions;
  for (const option of partitioner?.options ?? []) {
    const problem = problemOf(option, texts);
    if (problem) found[partitionerField(option.name)] = problem;
  }
  if (partitioner?.takesColumn) {
    if (!texts.column) found["partitioner_options.column"] = "Choose a column";
    else if (draft.dataset && !draft.dataset.columns.includes(texts.column)) found["partitioner_options.column"] = "The dataset has no such column; choose another";
  }
  if (partitioner?.takesProportions) {
    const numbers = numbersOf(texts.proportions);
    if (numbers.length === 0) found["partitioner_options.proportions"] = "Give a number for each chunk";
    else if (!numbers.every((value) => value > 0 && value <= 1e9)) found["partitioner_options.proportions"] = "Numbers above 0, such as 2, 1, 1";
    else if (numbers.length !== Number(draft.chunks)) found["partitioner_options.proportions"] = `${plural(numbers.length, "number")} for ${plural(Number(draft.chunks), "chunk")}`;
  }
  const each = Number(texts.shards_per_chunk || 2);
  if (partitioner?.name === "shards" && draft.dataset && draft.dataset.rows < Number(draft.chunks) * each) {
    found["partitioner_options.shards_per_chunk"] ??= `The dataset has ${plural(draft.dataset.rows, "row")}, fewer than ${draft.chunks} × ${each} shards`;
  }
  return found;
}

/** What does not fit the strategy. Shown at once, because the other half of it stands in another section. */
export function misfits(draft: Draft): Errors {
  const found: Errors = {};
  if (isInStep(draft)) return found;
  const strategy = strategyCalled(draft.strategy);
  for (const option of strategy?.options ?? []) {
    const problem = problemOf(option, draft.strategyOptions);
    if (problem) found[`strategy_options.${option.name}`] = problem;
  }
  const least = leastChunks(draft);
  const chunks = takingPart(draft);
  if (least !== null && chunks < least) {
    found["strategy_options.f"] ??= `With this, ${strategy?.label} needs ${least} chunks or more; ${chunks === Number(draft.chunks) ? "the job" : "a round"} has ${chunks}`;
  }
  const rounds = strategy?.leastRounds ?? 1;
  if (draft.rounds.trim() && Number(draft.rounds) > 0 && Number(draft.rounds) < rounds) {
    found.rounds = `${strategy?.label} keeps a momentum from round to round; it needs ${rounds} rounds or more`;
  }
  return found;
}

/** How many chunks the strategy needs with the f that is typed; null where any number will do. */
export function leastChunks(draft: Draft): number | null {
  const strategy = strategyCalled(draft.strategy);
  const f = Number(draft.strategyOptions.f?.trim() || strategy?.options.find((option) => option.name === "f")?.usual);
  return strategy?.leastChunks && Number.isInteger(f) ? strategy.leastChunks(f) : null;
}

function problemOf(option: NumberOption, texts: Texts): string | null {
  const text = texts[option.name]?.trim();
  if (!text || isWithin(option, Number(text))) return null;
  return `${option.isWhole ? "A whole number" : "A number"} ${rangeInWords(option)}`;
}

export function changed(known: readonly NumberOption[] = [], texts: Texts): Record<string, number> {
  const typed = known.flatMap(({ name, usual }) => {
    const text = texts[name]?.trim();
    return text && Number(text) !== usual ? [[name, Number(text)] as const] : [];
  });
  return Object.fromEntries(typed);
}

const numbersOf = (text = ""): number[] => text.split(/[\s,;:]+/).filter(Boolean).map(Number);
