import { bytes, count, plural } from "@/shared/format/numbers";
import { duration } from "@/shared/format/times";
import { recipeCalled } from "@/shared/learning/recipes";
import { partitionerInWords, strategyInWords } from "@/shared/learning/words";
import { Card, Facts, Plain, Time } from "@/shared/ui";
import { isInStep, type Job } from "./queries";

/** "after 3 rounds without a better accuracy" */
function stoppingInWords({ patience, min_delta: least, monitor }: NonNullable<Job["early_stopping"]>): string {
  return `after ${plural(patience, "round")} without a better ${monitor ?? "score"}${least ? ` by ${least}` : ""}`;
}

/** What only a job in rounds has. */
const roundFacts = (job: Job) =>
  [
    ["Learns by", <Plain key="strategy">{strategyInWords(job.strategy, job.strategy_options)}</Plain>],
    ["Updates a round needs", job.min_updates === job.chunks_per_round ? "all" : count(job.min_updates)],
    ["Deadline of a round", job.round_deadline_s === null ? "none" : duration(job.round_deadline_s)],
    ["A late chunk", job.backups ? "goes to a second machine too" : "is waited for"],
    ["Held-out rows", job.evaluations > 0 ? `${+(job.held_out_share * 100).toFixed(2)} %, scored by ${plural(job.evaluations, "provider")}` : "none"],
    ...(job.early_stopping ? ([["Stops early", stoppingInWords(job.early_stopping)]] as const) : []),
  ] as const;

/** What was ordered. */
export function SettingsCard({ job }: { job: Job }) {
  const hyperparameters = Object.entries(job.hyperparameters);
  const needs = [job.needs.gpu && "a GPU", job.needs.ram_bytes && `${bytes(job.needs.ram_bytes)} RAM`, job.needs.vram_bytes && `${bytes(job.needs.vram_bytes)} GPU memory`].filter(Boolean);
  return (
    <Card title="Order">
      <Facts
        items={[
          ["Submitted", <Time key="at" at={job.created_at} />],
          ["Dataset", <Plain key="data" max={60}>{job.dataset_name}</Plain>],
          ...(job.recipe ? ([["Trains", `${recipeCalled(job.recipe)?.label ?? job.recipe}, no code`]] as const) : []),
          ["Mode", isInStep(job) ? "in step: one model, all ranks together" : "in rounds"],
          ["Work", isInStep(job) ? plural(job.chunks, "rank") : `${plural(job.rounds, "round")} × ${job.chunks_per_round < job.chunks ? `${job.chunks_per_round} of ` : ""}${plural(job.chunks, "chunk")}`],
          ["Rows dealt", <Plain key="partitioner">{partitionerInWords(job.partitioner, job.partitioner_options)}</Plain>],
          ["Time limit", duration(job.time_limit_s)],
          ...(isInStep(job) ? [] : roundFacts(job)),
          ["Machines need", needs.length > 0 ? needs.join(", ") : "nothing special"],
          ["Seed", String(job.seed)],
          ...(job.arguments.length > 0 ? ([["Command line", <Plain key="args">{job.arguments.join(" ")}</Plain>]] as const) : []),
          ...hyperparameters.slice(0, 20).map(([name, value]) => [<Plain key="name" max={40}>{name}</Plain>, <Plain key="value" max={60}>{JSON.stringify(value)}</Plain>] as const),
        ]}
      />
    </Card>
  );
}
