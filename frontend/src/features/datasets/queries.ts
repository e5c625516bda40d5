import { infiniteQueryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/shared/api/client";
import { SLOW } from "@/shared/api/queryClient";
import type { Body } from "@/shared/api/types";

export type Dataset = Body<"DatasetOut">;

export const datasetsQuery = infiniteQueryOptions({
  queryKey: ["datasets"],
  initialPageParam: undefined as number | undefined,
  queryFn: ({ pageParam, signal }) => body(api.GET("/datasets", { params: { query: { limit: 50, before: pageParam } }, signal })),
  getNextPageParam: (page) => page.next ?? undefined,
  ...SLOW,
});

export function useDeleteDataset() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: number) => api.DELETE("/datasets/{dataset_id}", { params: { path: { dataset_id: id } } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["datasets"] }),
  });
}
