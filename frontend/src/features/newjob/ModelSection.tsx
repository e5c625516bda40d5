import { ACTIVATIONS, RECIPES, recipeCalled, USUAL_LAYERS } from "@/shared/learning/recipes";
import { Card, Choices, Field } from "@/shared/ui";
import type { Draft, Errors } from "./draft";
import styles from "./NewJob.module.css";
import { OptionFields } from "./OptionFields";

interface Props {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
}

/** A model of the server's own, and its hyperparameters, in the place of a script. */
export function ModelSection({ draft, update, errors }: Props) {
  const recipe = recipeCalled(draft.model);
  const texts = draft.modelOptions;
  const change = (modelOptions: Draft["modelOptions"]) => update({ modelOptions });
  return (
    <Card title="Model" note="trained by a script of Grid-X's own; you can read it on the job's page">
      <Choices
        legend="What learns"
        name="model"
        isWide
        value={draft.model}
        options={RECIPES.map(({ name, label, when }) => ({ value: name, label, hint: when }))}
        onChange={(model) => update({ model })}
      />
      <div className={styles.options}>
        <OptionFields options={recipe?.options ?? []} of="hyperparameters" texts={texts} errors={errors} onChange={change} />
        {recipe?.hasLayers && (
          <>
            <Field label="Hidden layers" error={errors["hyperparameters.hidden_layers"]} hint="Neurons of each layer, from the first to the last; more can learn more, and take longer">
              {(control) => <input {...control} value={texts.hidden_layers ?? USUAL_LAYERS} spellCheck={false} onChange={(event) => change({ ...texts, hidden_layers: event.target.value })} />}
            </Field>
            <Field label="Activation" error={errors["hyperparameters.activation"]} hint="What bends the output of each layer; relu suits nearly everything">
              {(control) => (
                <select {...control} value={texts.activation ?? "relu"} onChange={(event) => change({ ...texts, activation: event.target.value })}>
                  {ACTIVATIONS.map((name) => (
                    <option key={name}>{name}</option>
                  ))}
                </select>
              )}
            </Field>
          </>
        )}
      </div>
    </Card>
  );
}
