import { STRATEGY_GROUPS, strategyCalled } from "@/shared/learning/strategies";
import { strategyInWords } from "@/shared/learning/words";
import { Choices } from "@/shared/ui";
import type { Draft, Errors } from "./draft";
import { Fold } from "./Fold";
import styles from "./NewJob.module.css";
import { OptionFields } from "./OptionFields";
import { leastChunks, strategyOptionsOf } from "./options";
import { takingPart } from "./rounds";
import { missesStrategy } from "./scriptCheck";

interface Props {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
  errors: Errors;
}

/** How the updates of a round become the next model. The chosen strategy's options stand below its group. */
export function LearnSection({ draft, update, errors }: Props) {
  const isWrong = Object.keys(errors).some((name) => name.startsWith("strategy_options."));
  return (
    <Fold title="How it learns" chosen={strategyInWords(draft.strategy, strategyOptionsOf(draft))} isWrong={isWrong}>
      {STRATEGY_GROUPS.map(({ title, strategies }) => (
        <div key={title} className={styles.group}>
          <Choices
            legend={title}
            name="strategy"
            isWide
            value={draft.strategy}
            options={strategies.map(({ name, label, when }) => ({ value: name, label, hint: when }))}
            // Names repeat among strategies and mean other things there.
            onChange={(strategy) => update({ strategy, strategyOptions: {} })}
          />
          {strategies.some(({ name }) => name === draft.strategy) && <Chosen draft={draft} update={update} errors={errors} />}
        </div>
      ))}
    </Fold>
  );
}

function Chosen({ draft, update, errors }: Props) {
  const strategy = strategyCalled(draft.strategy);
  const needs = needsOf(draft, errors);
  const missing = draft.way === "script" && draft.script ? missesStrategy(draft.script, draft.strategy) : null;
  return (
    <>
      {strategy && strategy.options.length > 0 && (
        <div className={styles.options}>
          <OptionFields options={strategy.options} of="strategy_options" texts={draft.strategyOptions} errors={errors} onChange={(strategyOptions) => update({ strategyOptions })} />
        </div>
      )}
      {(needs || missing) && (
        <ul className={styles.findings} aria-label="What it needs">
          {needs && <li className={styles.hint}>{`${strategy?.label} ${needs}`}</li>}
          {missing && <li className={styles.problem}>{missing}</li>}
        </ul>
      )}
    </>
  );
}

/** Said before it is wrong. An error about chunks stands beside f; one about rounds stands in another section, so it is said here too. */
function needsOf(draft: Draft, errors: Errors): string | null {
  const chunks = leastChunks(draft);
  if (chunks !== null) return errors["strategy_options.f"] ? null : `needs ${chunks} chunks or more; ${takingPart(draft) < Number(draft.chunks) ? `a round has ${takingPart(draft)}` : `the job has ${draft.chunks || "none"}`}`;
  const rounds = strategyCalled(draft.strategy)?.leastRounds;
  return rounds ? `needs ${rounds} rounds or more; the job has ${draft.rounds || "none"}` : null;
}
