import { plural } from "@/shared/format/numbers";
import { PARTITIONERS, partitionerCalled } from "@/shared/learning/partitioners";
import { partitionerInWords } from "@/shared/learning/words";
import { Choices, Field } from "@/shared/ui";
import { ColumnField } from "./ColumnField";
import { DealPreview } from "./DealPreview";
import { usedDataset, type Draft, type Errors } from "./draft";
import { Fold } from "./Fold";
import styles from "./NewJob.module.css";
import { OptionFields } from "./OptionFields";
import { partitionerOptionsOf } from "./options";

interface Props {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
  /** Of the data, as far as they are known. */
  columns: readonly string[];
}

/** Which row goes to which chunk. */
export function DealSection({ draft, update, errors, columns }: Props) {
  const chosen = partitionerCalled(draft.partitioner);
  const dataset = usedDataset(draft);
  const texts = draft.partitionerOptions;
  const change = (partitionerOptions: Draft["partitionerOptions"]) => update({ partitionerOptions });
  const isWrong = Object.keys(errors).some((name) => name.startsWith("partitioner_options."));
  return (
    <Fold title="How rows are dealt" chosen={partitionerInWords(draft.partitioner, partitionerOptionsOf(draft))} isWrong={isWrong}>
      <div className={styles.group}>
        <Choices
          legend="Each row goes to one chunk"
          name="partitioner"
          isWide
          value={draft.partitioner}
          options={PARTITIONERS.map(({ name, label, when }) => ({ value: name, label, hint: when }))}
          onChange={(partitioner) => update({ partitioner })}
        />
        <div className={styles.options}>
          {chosen?.takesColumn && <ColumnField label="Column" hint="Its values decide, compared as text" columns={columns} value={texts.column ?? ""} error={errors["partitioner_options.column"]} onChange={(column) => change({ ...texts, column })} />}
          {chosen?.takesProportions && (
            <Field label="Proportions" error={errors["partitioner_options.proportions"]} hint={`${plural(Number(draft.chunks) || 0, "number")}, one for each chunk; only their ratios count`}>
              {(control) => <input {...control} value={texts.proportions ?? ""} placeholder="2, 1, 1" spellCheck={false} onChange={(event) => change({ ...texts, proportions: event.target.value })} />}
            </Field>
          )}
          <OptionFields options={chosen?.options ?? []} of="partitioner_options" texts={texts} errors={errors} onChange={change} />
        </div>
        {chosen?.warning && (
          <p className={styles.warning} role="status">
            {chosen.warning}
          </p>
        )}
        {dataset && <DealPreview key={dataset.id} draft={draft} dataset={dataset} update={update} />}
      </div>
    </Fold>
  );
}
