import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { api, body, linkTo } from "@/shared/api/client";
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

/** The draft that repeats a job, with its script and requirements. */
export function repeatQuery(jobId: number) {
  return queryOptions({
    queryKey: ["repeat", jobId],
    staleTime: Infinity,
    gcTime: 0,
    queryFn: async ({ signal }): Promise<Draft> => {
      const params = { path: { job_id: jobId } };
      const job = await body(api.GET("/jobs/{job_id}", { params, signal }));
      const artifacts = await body(api.GET("/jobs/{job_id}/artifacts", { params, signal }));
      const textOf = async (kind: string) => {
        const link = artifacts.items.find((item) => item.kind === kind)?.url;
        return link ? (await fetch(linkTo(link), { signal })).text() : "";
      };
      const dataset = await body(api.GET("/datasets/{dataset_id}", { params: { path: { dataset_id: job.dataset_id } }, signal })).catch(() => null);
      return draftOf(job, await textOf("script"), await textOf("requirements"), dataset);
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
