import { count, metric, percent } from "@/shared/format/numbers";
import { Card, CopyId, Facts } from "@/shared/ui";
import { differInWords, heldOutValue, mainFigure, type Round } from "./evaluation";
import styles from "./Job.module.css";
import { hasEnded, isInStep, type Job } from "./queries";

/** The newest global model in numbers: on held-out rows where the job has any, else as the chunks reported. */
export function ModelCard({ job }: { job: Job }) {
  const closed = job.round_list.filter((round) => round.closed_at && round.updates_used !== null);
  const last = closed.at(-1);
  const scored = closed.findLast((round) => round.evaluation);
  const inStep = isInStep(job);
  const best = closed.find((round) => round.round === job.best_round);
  return (
    <Card title="Global model" note={last && !inStep ? `after round ${last.round}` : undefined}>
      {scored ? <HeldOut job={job} round={scored} isLast={scored === last} /> : last ? <OnChunks rounds={closed} last={last} /> : <p className={styles.sub}>{nothingYet(job)}</p>}
      <div className={styles.facts}>
        <Facts
          items={[
            ...(best && best !== scored ? ([["Best round", `${best.round}, ${mainFigure(best)}`]] as const) : []),
            ...(scored ? ([["Held-out loss", metric(heldOutValue(scored, "loss"))], ["Training accuracy", percent(last?.mean_accuracy)]] as const) : []),
            [scored ? "Training loss" : "Loss", metric(last?.mean_loss)],
            ...(inStep ? [] : ([["Convergence delta", metric(last?.convergence_delta)], ["Step of the last round", metric(last?.step_norm)]] as const)),
            [inStep ? "Ranks that trained it" : "Updates in it", last ? `${count(last.updates_used ?? 0)} of ${count(job.chunks_per_round)}` : "–"],
            ["Paid so far", `${count(job.paid)} of ${count(job.price)}`],
            ["Held in escrow", count(job.held)],
          ]}
        />
      </div>
      <details className={styles.explain}>
        <summary>{inStep ? "What is the model made of?" : "What do delta and step mean?"}</summary>
        <p>
          {inStep
            ? "All ranks had the same weights at every step, so nothing is merged: it is the file that rank 0 saved, checked and written anew."
            : "The convergence delta is the distance between the average weighted by rows and the plain average of the updates. Near 0, the chunks pull the same way, or have equally many rows. The step is how far the round moved the model: it shrinks as training settles."}
        </p>
        {last?.global_model_sha256 && (
          <p>
            SHA-256 of the file: <CopyId value={last.global_model_sha256} shown={`${last.global_model_sha256.slice(0, 12)}…`} label="SHA-256 of the global model" />
          </p>
        )}
      </details>
    </Card>
  );
}

function nothingYet(job: Job): string {
  if (isInStep(job)) return hasEnded(job) ? "There is none: no try ended well." : "Rank 0 sends it when the training has ended.";
  return hasEnded(job) ? "There is none: no round was finished." : "The first one is made when all updates of round 1 are in.";
}

function HeldOut({ job, round, isLast }: { job: Job; round: Round; isLast: boolean }) {
  const found = round.evaluation;
  if (!found) return null;
  const warning = differInWords(found);
  const evaluated = job.round_list.filter((one) => one.evaluation).length;
  return (
    <>
      <p className={styles.big}>{mainFigure(round)}</p>
      <p className={styles.sub}>
        on {count(found.rows)} rows that no agent saw
        {!isLast && `, after round ${round.round}`}
        {job.best_round === round.round && evaluated > 1 && (hasEnded(job) ? "; the best of all rounds" : "; the best so far")}
      </p>
      {warning && <p className={styles.caution}>{warning}</p>}
    </>
  );
}

function OnChunks({ rounds, last }: { rounds: Round[]; last: Round }) {
  const values = rounds.flatMap((round) => (round.mean_accuracy === null ? [] : [round.mean_accuracy]));
  const accuracy = last.mean_accuracy;
  const isBest = accuracy !== null && values.length > 1 && accuracy >= Math.max(...values);
  return (
    <>
      <p className={styles.big}>{accuracy === null ? metric(last.mean_loss) : percent(accuracy)}</p>
      <p className={styles.sub}>
        {accuracy === null ? "training loss" : "training accuracy"}, mean over {count(last.rows_used ?? 0)} rows{isBest ? "; the best so far" : ""}
      </p>
    </>
  );
}
