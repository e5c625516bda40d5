import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/shared/api/client";
import { LIVE, SLOW } from "@/shared/api/queryClient";
import type { Body } from "@/shared/api/types";

export type Task = Body<"SellerTask">;
export type Key = Body<"KeyView">;
export type NewKey = Body<"KeyCreated">;
export type Movement = Body<"MovementOut">;

const MOST_MOVEMENTS = 2000;

export const myMachinesQuery = (userId: number) =>
  queryOptions({
    queryKey: ["agents", "mine", userId],
    queryFn: ({ signal }) => body(api.GET("/stats/my-agents/{user_id}", { params: { path: { user_id: userId } }, signal })),
    ...LIVE,
  });

/** What this provider's machines worked on, newest first; the server gives the latest 200. */
export const tasksQuery = (userId: number) =>
  queryOptions({
    queryKey: ["tasks", userId],
    queryFn: ({ signal }) => body(api.GET("/stats/seller-tasks/{user_id}", { params: { path: { user_id: userId } }, signal })),
    ...LIVE,
  });

export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: async ({ signal }) => (await body(api.GET("/agent/keys", { signal }))).items,
  ...SLOW,
});

/** The wallet's movements, newest first, as far back as the chart looks. */
export const movementsQuery = (userId: number) =>
  queryOptions({
    queryKey: ["wallet", userId, "earnings"],
    queryFn: async ({ signal }) => {
      const found: Movement[] = [];
      let before: number | null | undefined;
      do {
        const query = before ? { before, limit: 200 } : { limit: 200 };
        const page = await body(api.GET("/auth/wallet/{user_id}/transfers", { params: { path: { user_id: userId }, query }, signal }));
        found.push(...page.items);
        before = page.next;
      } while (before && found.length < MOST_MOVEMENTS);
      return found;
    },
    ...SLOW,
  });

/** The worker that this server offers for download; an error says why there is none. */
export const workerQuery = queryOptions({
  queryKey: ["worker"],
  staleTime: 60_000,
  queryFn: ({ signal }) => body(api.GET("/downloads/worker", { signal })),
});

export function useCreateKey() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (label: string) => body(api.POST("/agent/keys", { body: { label } })),
    onSuccess: () => client.invalidateQueries({ queryKey: keysQuery.queryKey }),
  });
}

export function useRevokeKey() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: number) => body(api.DELETE("/agent/keys/{key_id}", { params: { path: { key_id: id } } })),
    onSuccess: () => client.invalidateQueries(),
  });
}

export function useRemoveMachine() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => body(api.DELETE("/agent/{agent_id}", { params: { path: { agent_id: id } } })),
    onSuccess: () => client.invalidateQueries(),
  });
}
