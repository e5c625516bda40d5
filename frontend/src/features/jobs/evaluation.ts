import { metric, percent } from "@/shared/format/numbers";
import { plainName } from "@/shared/format/text";
import type { Body } from "@/shared/api/types";
import type { Measure } from "./chartSeries";
import type { Job } from "./queries";

export type Round = Job["round_list"][number];
type Evaluation = Body<"EvaluationView">;

/** What the held-out rows say of a round's model; null where nobody scored it, or not by this measure. */
export const heldOutValue = (round: Round | undefined, measure: Measure): number | null => round?.evaluation?.metrics[measure] ?? null;

/** Whether a job's rounds are scored on held-out rows. */
export const isScored = (job: Job): boolean => job.evaluations > 0;

/** All numbers of an evaluation but the one that `mainFigure` shows, as "loss 0.346" and "f1 0.912". */
export function otherMetrics({ metrics }: Evaluation): string[] {
  const shown = "accuracy" in metrics ? "accuracy" : "loss";
  const rest = Object.entries(metrics).filter(([name]) => name !== shown);
  return rest.map(([name, value]) => `${plainName(name).slice(0, 40)} ${metric(value)}`);
}

/** "94.8 %", or the loss where the script gives no accuracy. */
export function mainFigure(round: Round | undefined): string {
  const accuracy = heldOutValue(round, "accuracy");
  return accuracy === null ? `loss ${metric(heldOutValue(round, "loss"))}` : percent(accuracy);
}

/** A warning where two machines did not get the same numbers from the same model and rows; null where they agree. */
export function differInWords({ agents, differ }: Evaluation): string | null {
  if (differ.length === 0) return null;
  const names = differ.map((name) => plainName(name).slice(0, 40)).join(" and ");
  const whose = agents.map((agent) => plainName(agent).slice(0, 60)).join(" and ");
  return `For the same model and rows, the numbers of ${whose} differ in ${names}: their mean is shown. An evaluate() that draws nothing at random gives everybody the same.`;
}
