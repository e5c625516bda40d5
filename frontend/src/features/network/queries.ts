import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, body } from "@/shared/api/client";
import { LIVE } from "@/shared/api/queryClient";
import type { MachineState } from "@/shared/machines/hardware";

export const summaryQuery = queryOptions({
  queryKey: ["summary"],
  queryFn: ({ signal }) => body(api.GET("/stats/summary", { signal })),
  ...LIVE,
});

export type Filter = MachineState | "ONLINE";

/** Machines of everybody, by name; null for all of them. */
export const networkQuery = (filter: Filter | null) =>
  queryOptions({
    queryKey: ["agents", "network", filter],
    queryFn: ({ signal }) => body(api.GET("/stats/agents", { params: { query: filter ? { status: filter } : {} }, signal })),
    placeholderData: keepPreviousData,
    ...LIVE,
  });

export const nodeQuery = (id: string) =>
  queryOptions({
    queryKey: ["agents", "one", id],
    queryFn: ({ signal }) => body(api.GET("/stats/agents/{agent_id}", { params: { path: { agent_id: id } }, signal })),
    ...LIVE,
  });
