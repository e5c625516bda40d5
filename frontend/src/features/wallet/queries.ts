import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, body } from "@/shared/api/client";
import { LIVE } from "@/shared/api/queryClient";
import type { Body } from "@/shared/api/types";

export type Movement = Body<"MovementOut">;

const PAGE = 30;

/** One page of the wallet's movements, newest first. Older pages never change; the newest one is looked at again and again. */
export function transfersQuery(userId: number, before: number | null) {
  const query = before === null ? { limit: PAGE } : { limit: PAGE, before };
  return queryOptions({
    queryKey: ["wallet", userId, "transfers", before],
    queryFn: ({ signal }) => body(api.GET("/auth/wallet/{user_id}/transfers", { params: { path: { user_id: userId }, query }, signal })),
    placeholderData: keepPreviousData,
    ...(before === null ? LIVE : { staleTime: Infinity }),
  });
}
