import type { Body } from "@/shared/api/types";
import { layersOf, recipeCalled, USUAL_LAYERS } from "@/shared/learning/recipes";
import { isWithin, rangeInWords } from "@/shared/learning/options";
import type { Draft, Errors } from "./draft";
import { changed, textsOf, type OptionField, type Texts } from "./options";

const field = (name: string): OptionField => `hyperparameters.${name}`;

/** The server's words for the fields of the chosen model. */
export function recipeFields(draft: Draft): OptionField[] {
  const recipe = draft.way === "model" ? recipeCalled(draft.model) : undefined;
  return [...(recipe?.options ?? []).map((option) => field(option.name)), ...(recipe?.hasLayers ? [field("hidden_layers"), field("activation")] : [])];
}

/** What still keeps a no-code job from being sent. */
export function recipeProblems(draft: Draft): Errors {
  const found: Errors = {};
  const recipe = recipeCalled(draft.model);
  for (const option of recipe?.options ?? []) {
    const text = draft.modelOptions[option.name]?.trim();
    if (text && !isWithin(option, Number(text))) found[field(option.name)] = `${option.isWhole ? "A whole number" : "A number"} ${rangeInWords(option)}`;
  }
  if (recipe?.hasLayers && layersOf(layersText(draft.modelOptions)) === null) {
    found[field("hidden_layers")] = "Whole numbers from 1 to 4,096 with commas between them, at most 10, such as 128, 64";
  }
  if (!draft.offered && !draft.dataset) found.dataset = "Choose data: one of the server's, or a table of your own";
  if (!draft.offered && draft.dataset) {
    if (!draft.target) found.target = "Choose the column that is to be predicted";
    else if (!draft.dataset.columns.includes(draft.target)) found.target = "The data have no such column; choose another";
  }
  return found;
}

/** The part of POST /jobs that stands in the script's place. The draft must have no problems. */
export function recipeRequest(draft: Draft): Pick<Body<"JobRequest">, "model_type" | "dataset_id" | "dataset_name" | "target_column" | "hyperparameters"> {
  const recipe = recipeCalled(draft.model);
  const layers = layersText(draft.modelOptions);
  return {
    model_type: draft.model,
    dataset_id: draft.offered ? null : (draft.dataset?.id ?? null),
    dataset_name: draft.offered || null,
    target_column: draft.offered ? null : draft.target,
    hyperparameters: {
      ...changed(recipe?.options, draft.modelOptions),
      ...(recipe?.hasLayers && layers !== USUAL_LAYERS && { hidden_layers: layersOf(layers) }),
      ...(recipe?.hasLayers && draft.modelOptions.activation && { activation: draft.modelOptions.activation }),
    },
  };
}

/** What repeats a no-code job: its model, what differed from the defaults, and the column it predicted. */
export function recipeDraft(job: Body<"JobView">): Pick<Draft, "way" | "model" | "modelOptions" | "target"> {
  const recipe = job.recipe ? recipeCalled(job.recipe) : undefined;
  if (!recipe) return { way: "script", model: "mlp", modelOptions: {}, target: "" };
  const target = job.arguments.find((argument) => argument.startsWith("--target="))?.slice("--target=".length) ?? "";
  const texts = textsOf(recipe.options, job.hyperparameters);
  if (texts.hidden_layers === USUAL_LAYERS) delete texts.hidden_layers;
  if (texts.activation === "relu") delete texts.activation;
  return { way: "model", model: recipe.name, modelOptions: texts, target };
}

/** What stands, or would stand, in the field for hidden layers. */
export const layersText = (texts: Texts): string => texts.hidden_layers ?? USUAL_LAYERS;

