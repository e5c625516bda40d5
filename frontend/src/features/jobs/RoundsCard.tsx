import { useMemo, useState } from "react";
import { ButtonLink, Button, Card, Pill, Plain, Table, type Column } from "@/shared/ui";
import { count, metric, percent, plural } from "@/shared/format/numbers";
import { differInWords, isScored, mainFigure, otherMetrics, type Round } from "./evaluation";
import styles from "./Job.module.css";
import { hasEnded, type Job } from "./queries";

const FEW = 8;

/** What each merged round came to: on held-out rows, which no machine trained on, and on the chunks. */
export function RoundsCard({ job }: { job: Job }) {
  const [isWhole, setIsWhole] = useState(false);
  const scored = isScored(job);
  const scoring = scored && !hasEnded(job) ? job.current_round : null;
  const columns = useMemo(() => columnsOf(job.id, scored, job.best_round, scoring), [job.id, scored, job.best_round, scoring]);
  const closed = job.round_list.filter((round) => round.closed_at).toReversed();
  if (closed.length === 0) return null;
  return (
    <Card title="Rounds" note="newest first">
      <Table caption="Merged rounds, newest first" columns={columns} rows={isWhole ? closed : closed.slice(0, FEW)} rowKey={(round) => round.round} />
      {!isWhole && closed.length > FEW && (
        <Button className={styles.moreRounds} onClick={() => setIsWhole(true)}>
          Show {plural(closed.length - FEW, "earlier round")}
        </Button>
      )}
    </Card>
  );
}

/** The new-job form with this job's order, starting from one of its rounds. */
export const trainOnPath = (jobId: number, round: number): string => `/app/jobs/new?from=${jobId}&initial_job_id=${jobId}&initial_round=${round}`;

function columnsOf(jobId: number, scored: boolean, bestRound: number | null, scoring: number | null): Column<Round>[] {
  const heldOut: Column<Round>[] = [
    { key: "heldout", header: "Held-out rows", width: "17%", cell: (round) => <HeldOut round={round} isGoingOn={round.round === scoring} /> },
    { key: "by", header: "Scored by", cell: (round) => <ScoredBy round={round} /> },
  ];
  return [
    { key: "round", header: "Round", isTitle: true, cell: (round) => <Name round={round} isBest={round.round === bestRound} /> },
    ...(scored ? heldOut : []),
    { key: "training", header: "Training, by rows", width: "14%", cell: (round) => <Training round={round} /> },
    { key: "updates", header: "Updates", align: "right", cell: (round) => (round.updates_used === null ? "–" : count(round.updates_used)) },
    { key: "delta", header: "Delta", align: "right", cell: (round) => <span className={styles.figure}>{metric(round.convergence_delta)}</span> },
    { key: "step", header: "Step", align: "right", cell: (round) => <span className={styles.figure}>{metric(round.step_norm)}</span> },
    { key: "on", header: "Train on from it", hideHeader: true, align: "right", cell: (round) => <TrainOn jobId={jobId} round={round} /> },
  ];
}

function Name({ round, isBest }: { round: Round; isBest: boolean }) {
  return (
    <span className={styles.roundName}>
      Round {round.round}
      {isBest && (
        <Pill tone="green" mark="check">
          best
        </Pill>
      )}
    </span>
  );
}

function HeldOut({ round, isGoingOn }: { round: Round; isGoingOn: boolean }) {
  if (!round.evaluation) return isGoingOn ? "being scored" : "not scored";
  const others = otherMetrics(round.evaluation);
  return (
    <div className={styles.scored}>
      <b>{mainFigure(round)}</b>
      <small>
        {others.map((words, index) => (
          <span key={words}>
            {index > 0 && ", "}
            <span className={styles.figure}>{words}</span>
          </span>
        ))}
      </small>
    </div>
  );
}

function Training({ round }: { round: Round }) {
  if (round.mean_accuracy === null) return round.mean_loss === null ? "–" : `loss ${metric(round.mean_loss)}`;
  return (
    <div className={styles.scored}>
      <span>{percent(round.mean_accuracy)}</span>
      {round.mean_loss !== null && <small>loss {metric(round.mean_loss)}</small>}
    </div>
  );
}

function ScoredBy({ round }: { round: Round }) {
  const found = round.evaluation;
  if (!found) return "–";
  const warning = differInWords(found);
  return (
    <div className={styles.scored}>
      <span>
        <Plain max={80}>{found.agents.join(", ")}</Plain> on {plural(found.rows, "row")}
      </span>
      {warning && <p className={styles.caution}>{warning}</p>}
    </div>
  );
}

function TrainOn({ jobId, round }: { jobId: number; round: Round }) {
  if (!round.global_model_sha256) return null;
  return (
    <ButtonLink to={trainOnPath(jobId, round.round)} className={styles.small} aria-label={`Train on from round ${round.round}`}>
      Train on
    </ButtonLink>
  );
}
