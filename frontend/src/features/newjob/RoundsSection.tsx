import { plural } from "@/shared/format/numbers";
import { Choices, Field } from "@/shared/ui";
import type { Draft, Errors } from "./draft";
import { Fold } from "./Fold";
import styles from "./NewJob.module.css";
import { planOf } from "./draft";
import { unitsOf } from "./price";
import { heldOutOf, ROUND_FIELDS, roundsInWords, takingPart } from "./rounds";
import { checkEvaluate } from "./scriptCheck";
import { StartFields } from "./StartFields";

export interface RoundsProps {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
}

/** How a round goes, how its model is judged, when to stop, and where the first one starts. */
export function RoundsSection({ draft, update, errors }: RoundsProps) {
  const isWrong = Object.values(ROUND_FIELDS).some((name) => errors[name]);
  return (
    <Fold title="Rounds and evaluation" chosen={roundsInWords(draft)} isWrong={isWrong}>
      <Evaluation draft={draft} update={update} errors={errors} />
      <Rounds draft={draft} update={update} errors={errors} />
      <StartFields draft={draft} update={update} errors={errors} />
    </Fold>
  );
}

function Evaluation({ draft, update, errors }: RoundsProps) {
  const isScored = heldOutOf(draft) > 0;
  const finding = draft.way === "script" && draft.script ? checkEvaluate(draft.script, isScored) : null;
  const units = unitsOf(planOf(draft).timeLimitS) || 1;
  return (
    <fieldset className={styles.part}>
      <legend>Held-out rows</legend>
      <div className={styles.options}>
        <Field
          label="Rows held out, %"
          error={errors.heldOut}
          hint="No machine trains on them. After each round the model is scored on them, so that you see how good it is on rows it does not know. 10 to 20 are usual; empty for none"
        >
          {(control) => <input {...control} inputMode="decimal" placeholder="none" value={draft.heldOut} onChange={(event) => update({ heldOut: event.target.value })} />}
        </Field>
        {isScored && (
          <Choices
            legend="Who scores a round's model"
            name="evaluations"
            value={draft.evaluations}
            options={[
              { value: "1", label: "One provider", hint: `Each round costs ${plural(units, "credit")} more` },
              { value: "2", label: "Two providers", hint: `${plural(2 * units, "credit")} more; the page says so when their numbers differ` },
            ]}
            onChange={(evaluations) => update({ evaluations })}
          />
        )}
      </div>
      {finding && (
        <ul className={styles.findings} aria-label="What held-out rows need">
          <li className={styles[finding.tone]}>{finding.text}</li>
        </ul>
      )}
      {isScored && (
        <>
          <label className={styles.check}>
            <input type="checkbox" checked={draft.stopsEarly} onChange={(event) => update({ stopsEarly: event.target.checked })} /> Stop early when rounds bring nothing better
          </label>
          {errors.stopsEarly && <p className={styles.error}>{errors.stopsEarly}</p>}
          {draft.stopsEarly && <Stopping draft={draft} update={update} errors={errors} />}
        </>
      )}
    </fieldset>
  );
}

function Stopping({ draft, update, errors }: RoundsProps) {
  return (
    <div className={styles.thirds}>
      <Field label="Patience, rounds" error={errors.patience} hint="So many rounds in a row without anything better end the job; the credits of the others come back">
        {(control) => <input {...control} inputMode="numeric" value={draft.patience} onChange={(event) => update({ patience: event.target.value })} />}
      </Field>
      <Field label="Least improvement" error={errors.minDelta} hint="Less than this counts as nothing better">
        {(control) => <input {...control} inputMode="decimal" placeholder="0" value={draft.minDelta} onChange={(event) => update({ minDelta: event.target.value })} />}
      </Field>
      <Field label="Looks at" error={errors.monitor} hint="This also decides which round was best">
        {(control) => (
          <select {...control} value={draft.monitor} onChange={(event) => update({ monitor: event.target.value as Draft["monitor"] })}>
            <option value="">Accuracy, else loss</option>
            <option value="accuracy">Accuracy</option>
            <option value="loss">Loss</option>
          </select>
        )}
      </Field>
    </div>
  );
}

function Rounds({ draft, update, errors }: RoundsProps) {
  const part = takingPart(draft);
  const chunks = Number(draft.chunks);
  return (
    <fieldset className={styles.part}>
      <legend>In each round</legend>
      <div className={styles.thirds}>
        <Field
          label="Taking part, %"
          error={errors.fraction}
          hint={part > 0 && part < chunks ? `${part} of the ${chunks} chunks, drawn anew for each round` : "The share of the chunks that train in a round, drawn anew for each: less makes rounds cheaper, and more of them are needed"}
        >
          {(control) => <input {...control} inputMode="decimal" placeholder="100" value={draft.fraction} onChange={(event) => update({ fraction: event.target.value })} />}
        </Field>
        <Field label="Updates a round needs" error={errors.minUpdates} hint="Fewer than all lets a round close without a chunk that failed for good, or that is late at the deadline">
          {(control) => <input {...control} inputMode="numeric" placeholder="all" value={draft.minUpdates} onChange={(event) => update({ minUpdates: event.target.value })} />}
        </Field>
        <Field label="Deadline, minutes" error={errors.deadline} hint="The round closes then with what is there, if that is enough; else it gets as much time once more. Empty: it waits for every chunk">
          {(control) => <input {...control} inputMode="decimal" placeholder="none" value={draft.deadline} onChange={(event) => update({ deadline: event.target.value })} />}
        </Field>
      </div>
      <label className={styles.check}>
        <input type="checkbox" checked={draft.backups} onChange={(event) => update({ backups: event.target.checked })} /> Give a chunk that is late to a second machine as well, at no extra cost
      </label>
    </fieldset>
  );
}
