import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { api, body } from "@/shared/api/client";
import { LIVE } from "@/shared/api/queryClient";
import type { Body } from "@/shared/api/types";
import { draftOf, type Draft } from "./draft";

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
    mutationFn: (request: Body<"JobRequest">) => {
      const order = JSON.stringify(request);
      if (last.current.order !== order) last.current = { order, key: randomKey() };
      return body(api.POST("/jobs", { body: request, params: { header: { "Idempotency-Key": last.current.key } } }));
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
