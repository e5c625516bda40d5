import { count } from "@/shared/format/numbers";
import { Card, Choices, Field } from "@/shared/ui";
import type { Draft, Errors } from "./draft";
import styles from "./NewJob.module.css";
import { isInStep } from "./rounds";

interface Props {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
}

export function PlanSection({ draft, update, errors }: Props) {
  const chunks = Number(draft.chunks);
  const rows = draft.dataset && chunks > 0 ? Math.floor(draft.dataset.rows / chunks) : null;
  const dealt = rows === null ? null : `${isEven(draft.partitioner) ? "About" : "On average"} ${count(rows)} rows`;
  const inStep = isInStep(draft);
  return (
    <Card title="Training">
      {draft.way === "script" && <Modes draft={draft} update={update} errors={errors} />}
      <div className={styles.three}>
        <Field label={inStep ? "Ranks" : "Chunks"} error={errors.chunks} hint={inStep ? ranksInWords(dealt) : dealt === null ? "Pieces that the rows are dealt to" : `${dealt} on each machine at a time`}>
          {(control) => <input {...control} inputMode="numeric" value={draft.chunks} onChange={(event) => update({ chunks: event.target.value })} />}
        </Field>
        {!inStep && (
          <Field label="Rounds" error={errors.rounds} hint="How often the updates are joined">
            {(control) => <input {...control} inputMode="numeric" value={draft.rounds} onChange={(event) => update({ rounds: event.target.value })} />}
          </Field>
        )}
        <Field label="Time limit, hours" error={errors.hours} hint={inStep ? "For the whole training, each time it is tried" : "For one chunk in one round"}>
          {(control) => <input {...control} inputMode="decimal" value={draft.hours} onChange={(event) => update({ hours: event.target.value })} />}
        </Field>
      </div>
      <p className={styles.explain}>
        {inStep
          ? "All ranks begin and end together, and rank 0 saves the model. When one is lost all are stopped, and another try begins, from the last checkpoint if the script saves any. Ranks are paid once the model is verified; what is not used of the price comes back."
          : "In a round every chunk is trained on some machine, from the same model; their updates are then averaged, weighted by rows, unless you choose otherwise below. More chunks use more machines at once. More rounds let the model agree; three to ten are usual. What is not used of the price comes back."}
      </p>
    </Card>
  );
}

function Modes({ draft, update, errors }: Props) {
  return (
    <div className={styles.modes}>
      <Choices
        legend="How it trains"
        name="mode"
        isWide
        value={draft.mode}
        options={[
          { value: "federated", label: "In rounds", hint: "Each machine trains apart on its chunk, whenever it is free; the updates are averaged after each round" },
          { value: "ddp", label: "In step", hint: "One model, all machines together: the script uses torch.distributed, which joins the gradients after every batch" },
        ]}
        onChange={(mode) => update({ mode })}
      />
      {errors.mode && <p className={styles.error}>{errors.mode}</p>}
    </div>
  );
}

const ranksInWords = (dealt: string | null): string =>
  `Each rank gets its own chunk${dealt === null ? "" : `, ${dealt.toLowerCase()}`}. As many slots must be free at the same time, of agents that reach one another`;

const isEven = (partitioner: string): boolean => !["dirichlet", "by_column", "sizes"].includes(partitioner);
