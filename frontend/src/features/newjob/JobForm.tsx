import { useState, type DragEvent, type FormEvent } from "react";
import { useNavigate } from "react-router";
import { ApiError, fieldErrors } from "@/shared/api/errors";
import { sentence } from "@/shared/format/text";
import { Button, Choices, cx, Field, PageHeader, toast } from "@/shared/ui";
import { Agents } from "./Agents";
import { DataSection } from "./DataSection";
import { DealSection } from "./DealSection";
import { problemsOf, requestOf, type Draft, type Errors } from "./draft";
import { loadExample } from "./example";
import { sortFile } from "./files";
import { LearnSection } from "./LearnSection";
import { ModelSection } from "./ModelSection";
import { MoreSection } from "./MoreSection";
import styles from "./NewJob.module.css";
import { misfits, optionFields } from "./options";
import { PlanSection } from "./PlanSection";
import { useSubmit } from "./queries";
import { recipeFields } from "./recipe";
import { isInStep, modelFileOf, ROUND_FIELDS } from "./rounds";
import { RoundsSection } from "./RoundsSection";
import { ScriptSection } from "./ScriptSection";
import { Summary } from "./Summary";
import { useUpload } from "./useUpload";

/** How the server's words for a field are called here. */
const SERVER_FIELDS: Record<string, keyof Draft> = {
  title: "title",
  file_code: "script",
  script: "script",
  file_req: "requirements",
  requirements: "requirements",
  dataset_id: "dataset",
  mode: "mode",
  chunks: "chunks",
  rounds: "rounds",
  time_limit_s: "hours",
  arguments: "args",
  hyperparameters: "hyperparameters",
  model_type: "model",
  target_column: "target",
  dataset_name: "dataset",
  ...ROUND_FIELDS,
  seed: "seed",
};

export function JobForm({ initial, from }: { initial: Draft; from?: number }) {
  const [draft, setDraft] = useState(initial);
  const [refused, setRefused] = useState<string[]>([]);
  const [isDragging, setIsDragging] = useState(false);
  const [wasSent, setWasSent] = useState(false);
  const navigate = useNavigate();
  const submit = useSubmit();
  const update = (change: Partial<Draft>) => {
    setDraft((before) => ({ ...before, ...change }));
    submit.reset();
  };
  const upload = useUpload((dataset) => update({ dataset }));

  const problems = problemsOf(draft);
  const { errors, other } = withServer(wasSent ? problems : misfits(draft), submit.error, draft);

  const take = async (files: Iterable<File>) => {
    const problemsOfFiles: string[] = [];
    for (const sorted of await Promise.all(Array.from(files, sortFile))) {
      if (sorted.kind === "refused") problemsOfFiles.push(`${sorted.name}: ${sorted.problem}`);
      else if (sorted.kind === "data") {
        update({ dataset: null });
        upload.begin(sorted.file);
      } else if (sorted.kind === "script") {
        setDraft((before) => ({ ...before, way: "script", script: sorted.text, scriptName: sorted.name, title: before.title || titleOf(sorted.name) }));
        submit.reset();
      } else if (sorted.kind === "model") update({ way: "script", start: "file", initialModel: sorted.file });
      else update({ requirements: sorted.text, requirementsName: sorted.name });
    }
    setRefused(problemsOfFiles);
  };

  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setWasSent(true);
    if (Object.keys(problems).length > 0) {
      const form = event.currentTarget;
      requestAnimationFrame(() => focusOn(form.querySelector<HTMLElement>('[aria-invalid="true"]')));
      return;
    }
    submit.mutate({ request: requestOf(draft), model: modelFileOf(draft) }, {
      onSuccess: (done) => {
        toast(sentence(done.message));
        void navigate(`/app/jobs/${done.job_id}`);
      },
    });
  };

  const columns = draft.way === "model" && draft.offered ? [] : (draft.dataset?.columns ?? upload.start?.columns ?? []);

  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setIsDragging(false);
    void take(event.dataTransfer.files);
  };

  const example = async () => {
    const { file, ...rest } = await loadExample(draft.mode);
    update({ ...rest, way: "script" });
    setRefused([]);
    upload.begin(file);
  };

  return (
    // Dropping files is for those with a mouse; the buttons inside do the same.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form
      onSubmit={onSubmit}
      noValidate
      className={cx(isDragging && styles.dragging)}
      onDragOver={(event) => {
        event.preventDefault();
        setIsDragging(true);
      }}
      onDragLeave={(event) => !event.currentTarget.contains(event.relatedTarget as Node | null) && setIsDragging(false)}
      onDrop={onDrop}
    >
      <PageHeader
        title={from === undefined ? "New job" : initial.start === "job" && initial.initialRound !== "0" ? `Train job ${initial.initialJob} on` : `Run job ${from} again`}
        meta={<span>A script and a table of rows, or a ready-made model, become one trained model.</span>}
        actions={from === undefined && <ExampleButton load={example} />}
      />
      <div className={styles.columns}>
        <div className={styles.steps}>
          <Field label="Name" error={errors.title}>
            {(control) => <input {...control} value={draft.title} maxLength={200} onChange={(event) => update({ title: event.target.value })} placeholder="Tumour classifier" />}
          </Field>
          <Choices
            legend="What is trained"
            name="way"
            isWide
            value={draft.way}
            options={[
              { value: "script", label: "Your own script", hint: "Any PyTorch training script that reads a CSV" },
              { value: "model", label: "A ready-made model", hint: "No code: choose a model, the data and a few numbers" },
            ]}
            onChange={(way) => update({ way })}
          />
          {draft.way === "script" ? (
            <ScriptSection draft={draft} update={update} errors={errors} take={(files) => void take(files)} refused={refused} />
          ) : (
            <ModelSection draft={draft} update={update} errors={errors} />
          )}
          <DataSection draft={draft} update={update} errors={errors} upload={upload} take={(files) => void take(files)} />
          <PlanSection draft={draft} update={update} errors={errors} />
          {!isInStep(draft) && (
            <>
              <RoundsSection draft={draft} update={update} errors={errors} />
              <LearnSection draft={draft} update={update} errors={errors} />
            </>
          )}
          <DealSection draft={draft} update={update} errors={errors} columns={columns} />
          <MoreSection draft={draft} update={update} errors={errors} />
        </div>
        <aside className={styles.aside} aria-label="Price and machines">
          <Summary draft={draft} isSending={submit.isPending} error={other} missing={wasSent ? Object.values(problems) : []} isUploading={upload.view.step === "going"} />
          <Agents draft={draft} />
        </aside>
      </div>
    </form>
  );
}

/** What is wrong here, or what the server said; a word about no field in particular stands by the price. */
function withServer(here: Errors, error: Error | null, draft: Draft): { errors: Errors; other: string | null } {
  const errors = { ...here };
  if (error instanceof ApiError && error.status === 401) return { errors, other: "You were logged out meanwhile; submit again" };
  let other: string | null = null;
  const options = [...optionFields(draft), ...recipeFields(draft)];
  for (const [name, words] of Object.entries(fieldErrors(error, [...Object.keys(SERVER_FIELDS), ...options]))) {
    const field = SERVER_FIELDS[name] ?? options.find((option) => option === name);
    if (field && !isHidden(field, draft)) errors[field] = sentence(words);
    else other = sentence(field ? `${name}: ${words}` : words);
  }
  return { errors, other };
}

/** Of a field that a job in step does not have. */
function isHidden(field: keyof Errors, draft: Draft): boolean {
  return isInStep(draft) && [...Object.values<string>(ROUND_FIELDS), "rounds"].includes(field);
}

function focusOn(field: HTMLElement | null): void {
  const fold = field?.closest("details");
  if (fold) fold.open = true;
  field?.focus();
}

function ExampleButton({ load }: { load: () => Promise<void> }) {
  const [state, setState] = useState<"idle" | "loading" | "failed">("idle");
  const onClick = () => {
    setState("loading");
    load().then(
      () => setState("idle"),
      () => setState("failed"),
    );
  };
  return (
    <Button onClick={onClick} busy={state === "loading" && "Fetching the example …"}>
      {state === "failed" ? "The example could not be fetched; again?" : "Fill in the example"}
    </Button>
  );
}

const titleOf = (name: string): string => (/^(train|main|script|untitled)\d*\./i.test(name) ? "" : name.replace(/\.\w+$/, "").replaceAll("_", " "));
