import { useId, useMemo } from "react";
import { Card, CodeBlock, cx, Plain } from "@/shared/ui";
import { plural } from "@/shared/format/numbers";
import { sentence } from "@/shared/format/text";
import type { Draft, Errors } from "./draft";
import { FilePicker } from "./FilePicker";
import styles from "./NewJob.module.css";
import { isInStep } from "./rounds";
import { checkScript } from "./scriptCheck";

interface Props {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
  take: (files: File[]) => void;
  refused: string[];
}

export function ScriptSection({ draft, errors, take, refused, update }: Props) {
  const id = useId();
  const rounds = isInStep(draft) ? "in step" : Number(draft.rounds) || 1;
  const findings = useMemo(() => (draft.script ? checkScript(draft.script, rounds) : []), [draft.script, rounds]);
  return (
    <Card title="Script" note={draft.script ? undefined : ".py or .ipynb, and requirements.txt if it needs packages"}>
      {!draft.script && (
        <div className={cx(styles.drop, errors.script && styles.wrong)}>
          <p>Drop your script, requirements.txt and CSV anywhere on this page</p>
          <FilePicker label="Choose files" accept=".py,.ipynb,.txt,.csv,.tsv" multiple onFiles={take} invalid={Boolean(errors.script)} describedBy={errors.script && `${id}-script`} />
        </div>
      )}
      {draft.script && (
        <div className={styles.file}>
          <span>
            <b>
              <Plain>{draft.scriptName}</Plain>
            </b>{" "}
            {plural(draft.script.split("\n").length, "line")}
          </span>
          <FilePicker label="Change script" accept=".py,.ipynb" onFiles={take} invalid={Boolean(errors.script)} describedBy={errors.script && `${id}-script`} />
        </div>
      )}
      {errors.script && (
        <p id={`${id}-script`} className={styles.error}>
          {errors.script}
        </p>
      )}
      {refused.length > 0 && (
        <ul className={styles.refused} role="alert">
          {refused.map((words) => (
            <li key={words}>{sentence(words)}</li>
          ))}
        </ul>
      )}
      {findings.length > 0 && (
        <ul className={styles.findings} aria-label="What the script does">
          {findings.map((finding) => (
            <li key={finding.text} className={styles[finding.tone]}>
              {finding.text}
            </li>
          ))}
        </ul>
      )}
      {draft.script && (
        <details className={styles.source}>
          <summary>Show the script</summary>
          <CodeBlock text={draft.script} label="Source of the script" maxHeight="24rem" />
        </details>
      )}
      <div className={cx(styles.file, styles.second)}>
        <span>
          {draft.requirements ? (
            <>
              <b>
                <Plain>{draft.requirementsName}</Plain>
              </b>{" "}
              {plural(draft.requirements.split("\n").filter((line) => line.trim() && !line.trim().startsWith("#")).length, "package")}
            </>
          ) : (
            "No packages beyond PyTorch, NumPy, pandas, scikit-learn"
          )}
        </span>
        <span className={styles.row}>
          {draft.requirements && (
            <button type="button" className={styles.link} onClick={() => update({ requirements: "", requirementsName: "" })}>
              Remove
            </button>
          )}
          <FilePicker label="Choose requirements.txt" accept=".txt,.in" onFiles={take} invalid={Boolean(errors.requirements)} describedBy={errors.requirements && `${id}-req`} />
        </span>
      </div>
      {errors.requirements && (
        <p id={`${id}-req`} className={styles.error}>
          {errors.requirements}
        </p>
      )}
    </Card>
  );
}
