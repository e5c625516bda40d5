import { queryOptions } from "@tanstack/react-query";
import { api, body } from "@/shared/api/client";
import { LIVE } from "@/shared/api/queryClient";

export const summaryQuery = queryOptions({
  queryKey: ["stats", "summary"],
  queryFn: ({ signal }) => body(api.GET("/stats/summary", { signal })),
  ...LIVE,
});
