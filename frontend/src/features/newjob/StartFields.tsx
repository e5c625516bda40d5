import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { bytes } from "@/shared/format/numbers";
import { plainName } from "@/shared/format/text";
import { useMe } from "@/shared/api/session";
import { Choices, Field, Plain } from "@/shared/ui";
import { FilePicker } from "./FilePicker";
import styles from "./NewJob.module.css";
import { startsQuery } from "./queries";
import type { RoundsDraft } from "./rounds";
import type { RoundsProps } from "./RoundsSection";

const STARTS: readonly { value: RoundsDraft["start"]; label: string; hint: string }[] = [
  { value: "fresh", label: "Anew", hint: "The script makes the first model" },
  { value: "job", label: "An earlier job's model", hint: "Trains on from one of its rounds" },
  { value: "file", label: "A model file", hint: "A .pth of your own, of the same shape" },
];

/** The model that round 1 starts from. A no-code job cannot take a file. */
export function StartFields({ draft, update, errors }: RoundsProps) {
  const offered = draft.way === "script" ? STARTS : STARTS.filter(({ value }) => value !== "file");
  const start = offered.some(({ value }) => value === draft.start) ? draft.start : "fresh";
  return (
    <div className={styles.part}>
      <Choices legend="Round 1 starts from" name="start" value={start} options={offered} onChange={(chosen) => update({ start: chosen })} />
      {start === "job" && <EarlierJob draft={draft} update={update} errors={errors} />}
      {start === "file" && <ModelFile draft={draft} update={update} errors={errors} />}
    </div>
  );
}

function EarlierJob({ draft, update, errors }: RoundsProps) {
  const { data } = useQuery(startsQuery(useMe().id));
  const jobs = data ?? [];
  const isListed = !draft.initialJob || jobs.some((job) => String(job.id) === draft.initialJob);
  return (
    <div className={styles.options}>
      <Field label="Job" error={errors.initialJob} hint="Its model must have the shape that this script makes">
        {(control) => (
          <select {...control} value={draft.initialJob} onChange={(event) => update({ initialJob: event.target.value, initialRound: "" })}>
            <option value="">Choose a job</option>
            {!isListed && <option value={draft.initialJob}>Job {draft.initialJob}</option>}
            {jobs.map((job) => (
              <option key={job.id} value={job.id}>
                {job.id}: {plainName(job.title).slice(0, 60)}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Its round" error={errors.initialRound} hint="Empty: the best on held-out rows, else the last. 0: the model that the job itself started from">
        {(control) => <input {...control} inputMode="numeric" placeholder="best" value={draft.initialRound} onChange={(event) => update({ initialRound: event.target.value })} />}
      </Field>
    </div>
  );
}

function ModelFile({ draft, update, errors }: RoundsProps) {
  const id = useId();
  const file = draft.initialModel;
  return (
    <>
      <div className={styles.file}>
        <span>
          {file ? (
            <>
              <b>
                <Plain>{file.name}</Plain>
              </b>{" "}
              {bytes(file.size)}
            </>
          ) : (
            "A state_dict, as torch.save(model.state_dict(), …) writes it"
          )}
        </span>
        <FilePicker
          label={file ? "Change model file" : "Choose a model file"}
          accept=".pth,.pt"
          onFiles={([chosen]) => chosen && update({ initialModel: chosen })}
          invalid={Boolean(errors.initialModel)}
          describedBy={errors.initialModel && `${id}-model`}
        />
      </div>
      {errors.initialModel && (
        <p id={`${id}-model`} className={styles.error}>
          {errors.initialModel}
        </p>
      )}
    </>
  );
}
