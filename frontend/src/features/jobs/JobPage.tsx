import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearchParams } from "react-router";
import { count, plural } from "@/shared/format/numbers";
import { plainName, sentence } from "@/shared/format/text";
import { CodeBlock, PageHeader, Plain, QueryView, Stack, Time } from "@/shared/ui";
import { ArtifactsCard } from "./ArtifactsCard";
import { ChartCard } from "./ChartCard";
import { ContributionsCard } from "./ContributionsCard";
import { mainFigure } from "./evaluation";
import styles from "./Job.module.css";
import { JobActions } from "./JobActions";
import { LogsCard } from "./LogsCard";
import { ModelCard } from "./ModelCard";
import { leftInWords, secondsLeft } from "./progress";
import { hasEnded, isInStep, jobQuery, type Job } from "./queries";
import { RanksCard } from "./RanksCard";
import { RoundsBar } from "./RoundsBar";
import { RoundsCard } from "./RoundsCard";
import { JobPill, learnsBy } from "./states";
import { SettingsCard } from "./SettingsCard";
import { SubtasksCard } from "./SubtasksCard";
import { TimelineCard } from "./TimelineCard";
import { Warnings } from "./Warnings";

const numberOf = (text: string | null | undefined): number | null => (text && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null);

export function JobPage() {
  const { jobId } = useParams();
  const [params] = useSearchParams();
  const id = numberOf(jobId);
  // An id that cannot be one is asked for all the same: the server says so in its own words.
  const query = useQuery(jobQuery(id ?? 0, numberOf(params.get("round"))));
  return (
    <QueryView query={query} what={`job ${jobId}`}>
      {(job) => <JobView job={job} shown={numberOf(params.get("round")) ?? job.current_round} />}
    </QueryView>
  );
}

function JobView({ job, shown }: { job: Job; shown: number }) {
  const left = hasEnded(job) ? null : secondsLeft(job);
  return (
    <>
      <PageHeader
        name={plainName(job.title).slice(0, 80)}
        title={<Plain max={110}>{job.title}</Plain>}
        crumb={
          <>
            <Link to="/app/jobs">Jobs</Link> / {job.id}
          </>
        }
        meta={
          <>
            <JobPill job={job} />
            <span>
              {learnsBy(job)} · {plural(job.chunks, isInStep(job) ? "rank" : "chunk")} · <Plain max={40}>{job.dataset_name}</Plain>
            </span>
            <Clock job={job} />
            {left !== null && <span>{leftInWords(left)}</span>}
          </>
        }
        actions={<JobActions job={job} />}
      />
      <RoundsBar job={job} />
      <Why job={job} />
      <Warnings job={job} />
      <Stack>
        <div className={styles.grid}>
          <ChartCard job={job} round={shown} />
          <ModelCard job={job} />
        </div>
        {isInStep(job) ? (
          <RanksCard job={job} />
        ) : (
          <>
            <SubtasksCard job={job} round={shown} />
            <RoundsCard job={job} />
          </>
        )}
        <LogsCard job={job} />
        <div className={styles.halves}>
          <div className={styles.side}>
            <ContributionsCard job={job} />
            <TimelineCard job={job} />
          </div>
          <div className={styles.side}>
            <ArtifactsCard job={job} />
            <SettingsCard job={job} />
          </div>
        </div>
      </Stack>
    </>
  );
}

function Clock({ job }: { job: Job }) {
  if (job.finished_at) {
    return (
      <span>
        ended <Time at={job.finished_at} />
      </span>
    );
  }
  return job.started_at ? (
    <span>
      started <Time at={job.started_at} />
    </span>
  ) : (
    <span>
      submitted <Time at={job.created_at} />
    </span>
  );
}

/** What it waits for, how it ended, or why it failed. */
function Why({ job }: { job: Job }) {
  if (job.status === "FAILED") return <Failure reason={job.reason ?? "it failed without a reason"} />;
  const done = job.round_list.filter((round) => round.closed_at).length;
  const back = job.price - job.paid - job.held;
  const words =
    job.status === "COMPLETED"
      ? `${endInWords(job, done)}; ${count(job.paid)} of ${count(job.price)} credits were paid${back > 0 ? `, ${count(back)} came back` : ""}.`
      : job.status === "CANCELLED"
        ? `Cancelled${isInStep(job) ? "" : ` after ${done} of ${plural(job.rounds, "round")}`}. ${sentence(job.reason ?? "")}`
        : `${sentence(job.waiting_for ?? "it goes on")}.`;
  return (
    <p className={styles.why} aria-live="polite">
      <Plain max={400}>{words}</Plain>
    </p>
  );
}

/** How many rounds it took, and which was best where held-out rows say so. */
function endInWords(job: Job, done: number): string {
  if (isInStep(job)) return `${plural(job.chunks, "rank")} trained one model in step`;
  const isEarly = done < job.rounds && job.early_stopping !== null;
  const rounds = isEarly ? `Stopped early after ${done} of ${plural(job.rounds, "round")}, because the last ones brought nothing better` : `${plural(done, "round")} done`;
  const best = job.round_list.find((round) => round.round === job.best_round);
  return best && done > 1 ? `${rounds}; round ${best.round} was best on held-out rows, ${mainFigure(best)}` : rounds;
}

/** What went wrong, then the last line, which names the error, and below them all of it. */
function Failure({ reason }: { reason: string }) {
  const [first, ...rest] = reason.trim().split("\n");
  return (
    <div className={styles.failure} role="alert">
      <b>
        <Plain max={400}>{sentence(first ?? "")}</Plain>
      </b>
      {rest.length > 1 && (
        <p>
          <Plain max={400}>{rest.at(-1) ?? ""}</Plain>
        </p>
      )}
      {rest.length > 0 && <CodeBlock text={rest.join("\n").slice(0, 4000)} label="More about the failure" maxHeight="14rem" />}
    </div>
  );
}
