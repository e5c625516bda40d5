import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/shared/api/client";
import { LIVE } from "@/shared/api/queryClient";
import type { Body } from "@/shared/api/types";

export type Job = Body<"JobView">;
export type JobSummary = Body<"JobSummary">;
export type Subtask = Body<"SubtaskView">;
export type Rank = NonNullable<Job["gang"]>["ranks"][number];
export type Metric = Body<"MetricView">;

const ENDS = new Set(["COMPLETED", "FAILED", "CANCELLED"]);
export const hasEnded = (job: { status: string }): boolean => ENDS.has(job.status);

/** Whether all chunks train one model together, as ranks of `job.gang`. */
export const isInStep = (job: Pick<JobSummary, "mode">): boolean => job.mode === "ddp";

export function jobsQuery(userId: number) {
  return queryOptions({
    queryKey: ["jobs", "list", userId],
    queryFn: ({ signal }) => body(api.GET("/jobs/list/{user_id}", { params: { path: { user_id: userId } }, signal })),
    ...LIVE,
  });
}

/** A job with the subtasks of one round: the given one, or the current. */
export function jobQuery(jobId: number, round: number | null) {
  return queryOptions({
    queryKey: ["jobs", jobId, "view", round],
    queryFn: ({ signal }) => body(api.GET("/jobs/{job_id}", { params: { path: { job_id: jobId }, query: { round } }, signal })),
    placeholderData: keepPreviousData,
    ...LIVE,
    refetchInterval: (query) => (query.state.data && hasEnded(query.state.data) ? false : LIVE.refetchInterval),
  });
}

/** More lines than these make no picture, and every two seconds they would all be fetched anew. */
const MOST_VALUES = 20_000;

/** The metrics of one round, chunk by chunk; those of a round that is over never change. */
export function metricsQuery(jobId: number, round: number, isOver: boolean) {
  return queryOptions({
    queryKey: ["jobs", jobId, "metrics", round, isOver],
    queryFn: async ({ signal }) => {
      const items: Metric[] = [];
      let after: string | undefined;
      do {
        const params = { path: { job_id: jobId }, query: { round, after, limit: 5000 } };
        const page: Body<"MetricList"> = await body(api.GET("/jobs/{job_id}/metrics", { params, signal }));
        items.push(...page.items);
        after = page.next ?? undefined;
      } while (after && items.length < MOST_VALUES);
      return items;
    },
    ...LIVE,
    refetchInterval: isOver ? false : LIVE.refetchInterval,
    staleTime: isOver ? Infinity : 1000,
  });
}

/** Changes when an update was accepted, so it is asked for again then and not before. */
export function resultsQuery(jobId: number, done: number, status: string) {
  return queryOptions({
    queryKey: ["jobs", jobId, "results", done, status],
    queryFn: ({ signal }) => body(api.GET("/jobs/{job_id}/results", { params: { path: { job_id: jobId } }, signal })),
    placeholderData: keepPreviousData,
  });
}

/** The model's card: among other things, whose rows are in it. */
export function cardQuery(jobId: number, done: number, status: string) {
  return queryOptions({
    queryKey: ["jobs", jobId, "card", done, status],
    queryFn: ({ signal }) => body(api.GET("/jobs/{job_id}/card", { params: { path: { job_id: jobId } }, signal })),
    placeholderData: keepPreviousData,
  });
}

const LINKS_LAST_MS = 30 * 60_000;

export function artifactsQuery(jobId: number, done: number, status: string) {
  return queryOptions({
    queryKey: ["jobs", jobId, "artifacts", done, status],
    queryFn: ({ signal }) => body(api.GET("/jobs/{job_id}/artifacts", { params: { path: { job_id: jobId } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: LINKS_LAST_MS,
  });
}

export function logsQuery(jobId: number, subtaskId: number, isOver: boolean) {
  return queryOptions({
    queryKey: ["jobs", jobId, "logs", subtaskId],
    queryFn: ({ signal }) => body(api.GET("/jobs/{job_id}/logs", { params: { path: { job_id: jobId }, query: { subtask: subtaskId } }, signal })),
    ...LIVE,
    refetchInterval: isOver ? false : LIVE.refetchInterval,
  });
}

/** A fresh link to the final model: links run out after an hour. */
export const finalModelLink = async (jobId: number): Promise<string | null> =>
  (await body(api.GET("/jobs/download/{job_id}", { params: { path: { job_id: jobId } } }))).final_result_url;

export function useCancelJob(jobId: number) {
  const refresh = useRefresh();
  return useMutation({ mutationFn: () => body(api.POST("/jobs/{job_id}/cancel", { params: { path: { job_id: jobId } } })), onSettled: refresh });
}

export function useDeleteJob(jobId: number) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => body(api.DELETE("/jobs/{job_id}", { params: { path: { job_id: jobId } } })),
    onSuccess: () => {
      client.removeQueries({ queryKey: ["jobs", jobId] });
      void client.invalidateQueries({ queryKey: ["jobs", "list"] });
    },
  });
}

function useRefresh() {
  const client = useQueryClient();
  return () => {
    void client.invalidateQueries({ queryKey: ["jobs"] });
    void client.invalidateQueries({ queryKey: ["wallet"] });
  };
}
