import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { api, body } from "@/shared/api/client";
import { LIVE } from "@/shared/api/queryClient";
import type { Body } from "@/shared/api/types";
import { draftOf, type Draft, type JobRequest } from "./draft";
import { formOf } from "./orderForm";

export const datasetsQuery = infiniteQueryOptions({
  queryKey: ["datasets"],
  initialPageParam: undefined as number | undefined,
  queryFn: ({ pageParam, signal }) => body(api.GET("/datasets", { params: { query: { limit: 50, before: pageParam } }, signal })),
  getNextPageParam: (page) => page.next ?? undefined,
});

export const onlineQuery = queryOptions({
  queryKey: ["agents", "online"],
  queryFn: ({ signal }) => body(api.GET("/stats/agents/online", { signal })),
  ...LIVE,
});

/** The first rows of a dataset that was uploaded before. */
export const previewQuery = (datasetId: number) =>
  queryOptions({
    queryKey: ["datasets", datasetId, "preview"],
    staleTime: Infinity,
    queryFn: ({ signal }) => body(api.GET("/datasets/{dataset_id}/preview", { params: { path: { dataset_id: datasetId } }, signal })),
  });

/** How a choice of chunks and partitioner would deal a dataset's rows. */
export const dealQuery = (datasetId: number, query: { chunks: number; partitioner: string; column: string; seed: number }) =>
  queryOptions({
    queryKey: ["datasets", datasetId, "deal", query],
    staleTime: Infinity,
    queryFn: ({ signal }) => body(api.GET("/datasets/{dataset_id}/preview", { params: { path: { dataset_id: datasetId }, query: { ...query, rows: 1 } }, signal })),
  });

/** The user's jobs that may have a model to start from: whatever has merged a round. */
export const startsQuery = (userId: number) =>
  queryOptions({
    queryKey: ["jobs", "starts", userId],
    queryFn: async ({ signal }) => {
      const jobs = await body(api.GET("/jobs/list/{user_id}", { params: { path: { user_id: userId } }, signal }));
      return jobs.filter((job) => job.status === "COMPLETED" || job.current_round > 1);
    },
  });

/** The draft that repeats a job, with its script and requirements. */
export function repeatQuery(jobId: number) {
  return queryOptions({
    queryKey: ["repeat", jobId],
    staleTime: Infinity,
    gcTime: 0,
    queryFn: async ({ signal }): Promise<Draft> => {
      const params = { path: { job_id: jobId } };
      const job = await body(api.GET("/jobs/{job_id}", { params, signal }));
      const [script, requirements, dataset] = await Promise.all([
        body(api.GET("/jobs/{job_id}/script", { params, signal, parseAs: "text" })),
        body(api.GET("/jobs/{job_id}/requirements", { params, signal, parseAs: "text" })),
        body(api.GET("/datasets/{dataset_id}", { params: { path: { dataset_id: job.dataset_id } }, signal })).catch(() => null),
      ]);
      // An empty answer is not even an empty text here.
      return draftOf(job, script ?? "", requirements ?? "", dataset);
    },
  });
}

/** Submits a job. The same order sent again, after a cut, is the same job. */
export function useSubmit() {
  const client = useQueryClient();
  const last = useRef({ order: "", key: "" });
  return useMutation({
    mutationFn: ({ request, model }: { request: JobRequest; model: File | null }) => {
      const order = JSON.stringify([request, model && [model.name, model.size, model.lastModified]]);
      if (last.current.order !== order) last.current = { order, key: randomKey() };
      const params = { header: { "Idempotency-Key": last.current.key } };
      // What the schema says of the form's parts is not what a browser calls them.
      if (model) return body(api.POST("/jobs/upload", { body: formOf(request, model) as never, params }));
      return body(api.POST("/jobs", { body: request as Body<"JobRequest">, params }));
    },
    onSuccess: () => {
      last.current = { order: "", key: "" };
      void client.invalidateQueries({ queryKey: ["jobs"] });
      void client.invalidateQueries({ queryKey: ["wallet"] });
    },
  });
}

/** crypto.randomUUID is not there on plain http. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
