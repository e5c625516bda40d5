import { Card, Field } from "@/shared/ui";
import type { Draft, Errors } from "./draft";
import styles from "./NewJob.module.css";
import { isInStep } from "./rounds";

interface Props {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
}

const NAMES = ["args", "hyperparameters", "seed", "ramGib", "vramGib"] as const;

/** What most jobs leave alone. Open when something in it is set or wrong. */
export function MoreSection({ draft, update, errors }: Props) {
  const hasUpdates = !isInStep(draft);
  const isSet = draft.needsGpu || (hasUpdates && draft.keepUpdates) || NAMES.some((name) => draft[name] || errors[name]);
  return (
    <Card>
      <details className={styles.more} open={isSet || undefined}>
        <summary>
          <h2>Arguments, machines and more</h2>
        </summary>
        <div className={styles.two}>
          <Field label="Command line" error={errors.args} hint="What the script gets as its arguments">
            {(control) => <input {...control} value={draft.args} placeholder="--csv-path data.csv --epochs 5" spellCheck={false} onChange={(event) => update({ args: event.target.value })} />}
          </Field>
          <Field label="Hyperparameters" error={errors.hyperparameters} hint="A JSON object; gridx_task.hyperparameters() returns it">
            {(control) => <input {...control} value={draft.hyperparameters} placeholder='{"epochs": 5}' spellCheck={false} onChange={(event) => update({ hyperparameters: event.target.value })} />}
          </Field>
          <Field label="Memory, GiB" error={errors.ramGib} hint="Only machines with at least this much">
            {(control) => <input {...control} inputMode="decimal" value={draft.ramGib} onChange={(event) => update({ ramGib: event.target.value })} />}
          </Field>
          <Field label="GPU memory, GiB" error={errors.vramGib} hint="Only machines whose GPU has at least this much">
            {(control) => <input {...control} inputMode="decimal" value={draft.vramGib} onChange={(event) => update({ vramGib: event.target.value })} />}
          </Field>
          <Field label="Seed" error={errors.seed} hint="The same seed deals the same rows and starts the same random numbers">
            {(control) => <input {...control} inputMode="numeric" placeholder="drawn" value={draft.seed} onChange={(event) => update({ seed: event.target.value })} />}
          </Field>
          <label className={styles.check}>
            <input type="checkbox" checked={draft.needsGpu} onChange={(event) => update({ needsGpu: event.target.checked })} /> Only machines with a GPU
          </label>
          {hasUpdates && (
            <label className={styles.check}>
              <input type="checkbox" checked={draft.keepUpdates} onChange={(event) => update({ keepUpdates: event.target.checked })} /> Keep every round's updates
            </label>
          )}
        </div>
      </details>
    </Card>
  );
}
