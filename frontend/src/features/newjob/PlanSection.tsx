import { count } from "@/shared/format/numbers";
import { Card, Field } from "@/shared/ui";
import type { Draft, Errors } from "./draft";
import styles from "./NewJob.module.css";

interface Props {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
}

export function PlanSection({ draft, update, errors }: Props) {
  const chunks = Number(draft.chunks);
  const rows = draft.dataset && chunks > 0 ? Math.floor(draft.dataset.rows / chunks) : null;
  return (
    <Card title="Training">
      <div className={styles.three}>
        <Field label="Chunks" error={errors.chunks} hint={rows === null ? "Pieces that the rows are dealt to" : `${isEven(draft.partitioner) ? "About" : "On average"} ${count(rows)} rows on each machine at a time`}>
          {(control) => <input {...control} inputMode="numeric" value={draft.chunks} onChange={(event) => update({ chunks: event.target.value })} />}
        </Field>
        <Field label="Rounds" error={errors.rounds} hint="How often the updates are joined">
          {(control) => <input {...control} inputMode="numeric" value={draft.rounds} onChange={(event) => update({ rounds: event.target.value })} />}
        </Field>
        <Field label="Time limit, hours" error={errors.hours} hint="For one chunk in one round">
          {(control) => <input {...control} inputMode="decimal" value={draft.hours} onChange={(event) => update({ hours: event.target.value })} />}
        </Field>
      </div>
      <p className={styles.explain}>
        In a round every chunk is trained on some machine, from the same model; their updates are then averaged, weighted by rows, unless you choose otherwise below. More chunks use more machines at once. More rounds
        let the model agree; three to ten are usual. What is not used of the price comes back.
      </p>
    </Card>
  );
}

const isEven = (partitioner: string): boolean => !["dirichlet", "by_column", "sizes"].includes(partitioner);
