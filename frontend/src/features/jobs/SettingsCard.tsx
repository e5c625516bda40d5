import { bytes, count, plural } from "@/shared/format/numbers";
import { duration } from "@/shared/format/times";
import { sentence } from "@/shared/format/text";
import { partitionerInWords, strategyInWords } from "@/shared/learning/words";
import { Card, Facts, Plain, Time } from "@/shared/ui";
import styles from "./Job.module.css";
import type { Job } from "./queries";

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
          ["Work", `${plural(job.rounds, "round")} × ${plural(job.chunks, "chunk")}`],
          ["Learns by", <Plain key="strategy">{strategyInWords(job.strategy, job.strategy_options)}</Plain>],
          ["Rows dealt", <Plain key="partitioner">{partitionerInWords(job.partitioner, job.partitioner_options)}</Plain>],
          ["Time limit", duration(job.time_limit_s)],
          ["Updates a round needs", job.min_updates === job.chunks ? "all" : count(job.min_updates)],
          ["Machines need", needs.length > 0 ? needs.join(", ") : "nothing special"],
          ["Seed", String(job.seed)],
          ...(job.arguments.length > 0 ? ([["Command line", <Plain key="args">{job.arguments.join(" ")}</Plain>]] as const) : []),
          ...hyperparameters.slice(0, 20).map(([name, value]) => [<Plain key="name" max={40}>{name}</Plain>, <Plain key="value" max={60}>{JSON.stringify(value)}</Plain>] as const),
        ]}
      />
      {job.warnings.length > 0 && (
        <ul className={styles.warnings}>
          {job.warnings.map((words) => (
            <li key={words}>
              <Plain max={300}>{sentence(words)}</Plain>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
