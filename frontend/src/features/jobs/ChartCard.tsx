import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { metric } from "@/shared/format/numbers";
import { Card, LineChart, Loading } from "@/shared/ui";
import { heldOutValue } from "./evaluation";
import { seriesByEpoch, seriesByRound, type Measure } from "./chartSeries";
import styles from "./Job.module.css";
import { hasEnded, isInStep, metricsQuery, resultsQuery, type Job } from "./queries";
import { Switch } from "./Switch";

const MEASURES = [
  { value: "accuracy", label: "Accuracy" },
  { value: "loss", label: "Loss" },
] as const;
const AXES = [
  { value: "round", label: "by round" },
  { value: "epoch", label: "by epoch" },
] as const;

export function ChartCard({ job, round }: { job: Job; round: number }) {
  const [chosen, setChosen] = useState<Measure | null>(null);
  const [axis, setAxis] = useState<"round" | "epoch" | null>(null);
  const hasAccuracy = job.round_list.some((item) => item.mean_accuracy !== null || heldOutValue(item, "accuracy") !== null) || job.subtasks.some((item) => item.accuracy !== null);
  const hasLoss = job.round_list.some((item) => item.mean_loss !== null || heldOutValue(item, "loss") !== null) || job.subtasks.some((item) => item.loss !== null);
  const measure = chosen ?? (hasAccuracy || !hasLoss ? "accuracy" : "loss");
  const done = job.round_list.filter((item) => item.closed_at).length;
  const inStep = isInStep(job);
  const shown = inStep ? "epoch" : (axis ?? (done > 1 ? "round" : "epoch"));
  return (
    <Card
      title={measure === "accuracy" ? "Accuracy" : "Loss"}
      actions={
        <>
          <Switch label="Measure" options={MEASURES} value={measure} onChange={setChosen} />
          {!inStep && <Switch label="Axis" options={AXES} value={shown} onChange={setAxis} />}
        </>
      }
    >
      {shown === "round" ? <ByRound job={job} measure={measure} /> : <ByEpoch job={job} round={round} measure={measure} />}
    </Card>
  );
}

function ByRound({ job, measure }: { job: Job; measure: Measure }) {
  const { data } = useQuery(resultsQuery(job.id, job.completed_subtasks, job.status));
  const perRound = data?.per_round;
  const series = useMemo(() => seriesByRound(job.round_list, perRound ?? [], measure, job.best_round), [job.round_list, job.best_round, perRound, measure]);
  if (series.length === 0) return <Nothing job={job} measure={measure} />;
  return <LineChart label={`${measure} by round`} series={series} xLabel="Round" xDomain={[1, Math.max(2, job.rounds)]} faintName="each agent" format={metric} height={290} />;
}

function ByEpoch({ job, round, measure }: { job: Job; round: number; measure: Measure }) {
  const isOver = hasEnded(job) || round < job.current_round;
  const query = useQuery(metricsQuery(job.id, round, isOver));
  const inStep = isInStep(job);
  const piece = inStep ? "rank" : "chunk";
  const series = useMemo(() => seriesByEpoch(query.data ?? [], measure, job.subtasks, piece), [query.data, measure, job.subtasks, piece]);
  if (query.isPending) return <Loading what="the metrics of this round" />;
  if (series.length === 0) return <Nothing job={job} measure={measure} />;
  const label = `${measure} by epoch${inStep ? "" : ` in round ${round}`}`;
  return <LineChart label={label} series={series} xLabel={inStep ? "Epoch" : `Round ${round}, epoch`} faintName={`each ${piece}`} format={metric} height={290} />;
}

function Nothing({ job, measure }: { job: Job; measure: Measure }) {
  return (
    <p className={styles.nothing}>
      {hasEnded(job) && job.completed_subtasks === 0
        ? "The job ended before a machine had finished its work."
        : job.completed_subtasks > 0
          ? `This script reported no ${measure}. To see it learn, let it call gridx_task.report(epoch=…, loss=…, accuracy=…).`
          : "The first values appear when a machine has finished its first epoch."}
    </p>
  );
}
