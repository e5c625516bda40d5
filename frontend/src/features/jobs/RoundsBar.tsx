import { percent } from "@/shared/format/numbers";
import { Progress } from "@/shared/ui";
import styles from "./Job.module.css";
import { roundShare, shareOf } from "./progress";
import { hasEnded, isInStep, type Job } from "./queries";

const MOST_SEGMENTS = 50;

/** A segment for each round: done, the part of the one that runs, still to come. One bar where there are very many. */
export function RoundsBar({ job }: { job: Job }) {
  const done = job.round_list.filter((round) => round.closed_at).length;
  const label = isInStep(job) ? `${percent(done || roundShare(job))} of the training done` : `${done} of ${job.rounds} rounds done`;
  if (job.rounds > MOST_SEGMENTS) return <Progress value={shareOf(job)} label={label} tone={job.status === "FAILED" ? "red" : "green"} />;
  const share = roundShare(job);
  const segments = Array.from({ length: job.rounds }, (_, index) => {
    if (index < done) return 1;
    return index + 1 === job.current_round && !(hasEnded(job) && job.status !== "FAILED") ? share : 0;
  });
  return (
    <div className={styles.rounds} role="img" aria-label={label} style={{ gridTemplateColumns: `repeat(${job.rounds}, 1fr)` }}>
      {segments.map((filled, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- rounds are numbered
        <span key={index} className={index + 1 === job.current_round && filled < 1 && !hasEnded(job) ? styles.now : undefined} title={isInStep(job) ? "All ranks" : `Round ${index + 1}`}>
          <i className={job.status === "FAILED" && index + 1 > done ? styles.broken : undefined} style={{ transform: `scaleX(${filled})` }} />
        </span>
      ))}
    </div>
  );
}
