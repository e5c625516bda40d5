import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { count, metric, percent, plural } from "@/shared/format/numbers";
import { duration, secondsBetween } from "@/shared/format/times";
import { plainName } from "@/shared/format/text";
import { partitionerInWords, strategyInWords } from "@/shared/learning/words";
import { useMe } from "@/shared/api/session";
import { Card, Field, LineChart, PageHeader, QueryView, Stack, Table } from "@/shared/ui";
import { seriesOfPair, type Measure } from "./chartSeries";
import { heldOutValue, isScored, mainFigure } from "./evaluation";
import styles from "./Job.module.css";
import { isInStep, jobQuery, jobsQuery, type Job, type JobSummary } from "./queries";
import { jobLook, learnsBy } from "./states";

/** Two jobs side by side, by `?a=1&b=2`. */
export function ComparePage() {
  const me = useMe();
  const jobs = useQuery(jobsQuery(me.id));
  const [params, setParams] = useSearchParams();
  return (
    <>
      <PageHeader title="Compare two jobs" />
      <QueryView query={jobs} what="your jobs">
        {(list) => {
          const a = Number(params.get("a")) || list[0]?.id || 0;
          const b = Number(params.get("b")) || list.find((job) => job.id !== a)?.id || 0;
          const choose = (which: "a" | "b", id: string) => setParams({ a: String(a), b: String(b), [which]: id }, { replace: true });
          return (
            <>
              <div className={styles.compare}>
                <Picker label="First job" jobs={list} value={a} onChange={(id) => choose("a", id)} />
                <Picker label="Second job" jobs={list} value={b} onChange={(id) => choose("b", id)} />
              </div>
              {a > 0 && b > 0 && a !== b ? <Pair a={a} b={b} /> : <p className={styles.sub}>Choose two different jobs.</p>}
            </>
          );
        }}
      </QueryView>
    </>
  );
}

function Picker({ label, jobs, value, onChange }: { label: string; jobs: JobSummary[]; value: number; onChange: (id: string) => void }) {
  return (
    <Field label={label}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.target.value)}>
          {jobs.map((job) => (
            <option key={job.id} value={job.id}>
              {job.id}: {plainName(job.title).slice(0, 70)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function Pair({ a, b }: { a: number; b: number }) {
  const first = useQuery(jobQuery(a, null));
  const second = useQuery(jobQuery(b, null));
  return (
    <QueryView query={first} what={`job ${a}`}>
      {(one) => (
        <QueryView query={second} what={`job ${b}`}>
          {(two) => <Compared jobs={[one, two]} />}
        </QueryView>
      )}
    </QueryView>
  );
}

function Compared({ jobs }: { jobs: [Job, Job] }) {
  const [one, two] = jobs;
  return (
    <Stack>
      <div className={styles.even}>
        <Curves jobs={jobs} measure="accuracy" />
        <Curves jobs={jobs} measure="loss" />
      </div>
      <Card title="Side by side">
        <Table
          caption="The two jobs side by side"
          rows={FACTS.filter((row) => !row.isForSome || jobs.some((job) => row.of(job) !== "–"))}
          rowKey={(row) => row.name}
          columns={[
            { key: "name", header: "What", hideHeader: true, isTitle: true, cell: (row) => nameOf(row, jobs) },
            { key: "one", header: `Job ${one.id}`, align: "right", cell: (row) => row.of(one) },
            { key: "two", header: `Job ${two.id}`, align: "right", cell: (row) => row.of(two) },
          ]}
        />
      </Card>
    </Stack>
  );
}

const lastClosed = (job: Job) => job.round_list.findLast((round) => round.closed_at);

/** A setting that differs is marked: it may be why the results do. */
function nameOf(row: Fact, [one, two]: [Job, Job]) {
  return (
    <>
      {row.name} {row.isSetting && row.of(one) !== row.of(two) && <span className={styles.differs}>differs</span>}
    </>
  );
}

interface Fact {
  name: string;
  of: (job: Job) => string;
  /** Ordered, not found. */
  isSetting?: true;
  /** Left out where neither job has it. */
  isForSome?: true;
}

function bestInWords(job: Job): string {
  const best = job.round_list.find((round) => round.round === job.best_round);
  return best ? `${best.round}, ${mainFigure(best)}` : "–";
}

const FACTS: Fact[] = [
  { name: "State", of: (job) => jobLook(job)[0] },
  { name: "Dataset", of: (job) => plainName(job.dataset_name).slice(0, 60), isSetting: true },
  { name: "Rounds done", of: (job) => `${job.round_list.filter((round) => round.closed_at).length} of ${job.rounds}` },
  { name: "Chunks", of: (job) => count(job.chunks), isSetting: true },
  { name: "Learns by", of: (job) => (isInStep(job) ? learnsBy(job) : strategyInWords(job.strategy, job.strategy_options)), isSetting: true },
  { name: "Rows dealt", of: (job) => partitionerInWords(job.partitioner, job.partitioner_options).slice(0, 200), isSetting: true },
  { name: "Chunks in a round", of: (job) => (job.chunks_per_round < job.chunks ? count(job.chunks_per_round) : "–"), isSetting: true, isForSome: true },
  { name: "Held-out rows", of: (job) => (isScored(job) ? `${+(job.held_out_share * 100).toFixed(2)} %` : "–"), isSetting: true, isForSome: true },
  { name: "Held-out accuracy at the end", of: (job) => percent(heldOutValue(lastClosed(job), "accuracy")), isForSome: true },
  { name: "Held-out loss at the end", of: (job) => metric(heldOutValue(lastClosed(job), "loss")), isForSome: true },
  { name: "Best round", of: bestInWords, isForSome: true },
  { name: "Training accuracy at the end", of: (job) => percent(lastClosed(job)?.mean_accuracy) },
  { name: "Training loss at the end", of: (job) => metric(lastClosed(job)?.mean_loss) },
  { name: "Convergence delta", of: (job) => metric(lastClosed(job)?.convergence_delta) },
  { name: "Hyperparameters", of: (job) => plainName(JSON.stringify(job.hyperparameters)).slice(0, 200), isSetting: true },
  { name: "Paid", of: (job) => plural(job.paid, "credit") },
  { name: "Took", of: (job) => (job.finished_at ? duration(secondsBetween(job.created_at, job.finished_at)) : "–") },
];

function Curves({ jobs, measure }: { jobs: [Job, Job]; measure: Measure }) {
  const series = seriesOfPair(jobs, measure);
  const isHeldOut = jobs.some(isScored);
  const rounds = Math.max(2, ...jobs.map((job) => job.rounds));
  return (
    <Card title={measure === "accuracy" ? "Accuracy" : "Loss"} note={isHeldOut ? "solid: held-out rows; dashed: training, mean by rows" : "mean by rows, after each round"}>
      {series.some((item) => item.points.length > 0) ? (
        <LineChart label={`${measure} of both jobs by round`} series={series} xLabel="Round" xDomain={[1, rounds]} height={220} />
      ) : (
        <p className={styles.sub}>Neither has reported any.</p>
      )}
    </Card>
  );
}
