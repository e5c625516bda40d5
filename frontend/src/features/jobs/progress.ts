import { duration, secondsBetween } from "@/shared/format/times";
import type { Job, JobSummary } from "./queries";

/** The share of a job's training subtasks that is done. Nothing is left of one that ended well, if with fewer of them. */
export const shareOf = (job: JobSummary): number => (job.status === "COMPLETED" ? 1 : job.total_subtasks > 0 ? job.completed_subtasks / job.total_subtasks : 0);

/** The share of the current round that is done, running subtasks counted by their own progress. */
export function roundShare(job: Job): number {
  const current = job.subtasks.filter((subtask) => subtask.round === job.current_round && subtask.kind !== "evaluate");
  if (current.length === 0) return 0;
  const done = current.map((subtask) => (subtask.status === "COMPLETED" || subtask.status === "VERIFYING" ? 1 : subtask.status === "RUNNING" ? (subtask.progress ?? 0) : 0));
  return done.reduce((sum, share) => sum + share, 0) / current.length;
}

/** How long it will still take, by the pace of the latest rounds that are over; null before there is one. */
export function secondsLeft(job: Job): number | null {
  const closed = job.round_list.filter((round) => round.closed_at).slice(-5);
  if (closed.length === 0) return null;
  // From opening to opening, so that the evaluation between them counts.
  const opened = new Map(job.round_list.map((round) => [round.round, round.opened_at]));
  const paces = closed.map((round) => secondsBetween(round.opened_at, opened.get(round.round + 1) ?? round.closed_at ?? round.opened_at));
  const pace = paces.reduce((sum, seconds) => sum + seconds, 0) / paces.length;
  const over = job.round_list.filter((round) => round.closed_at).length;
  return Math.max(0, pace * (job.rounds - over - roundShare(job)));
}

export const leftInWords = (seconds: number): string => (seconds < 10 ? "nearly done" : `about ${duration(seconds < 60 ? Math.ceil(seconds / 10) * 10 : Math.ceil(seconds / 60) * 60)} left`);
