import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "./errors";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The server may well run on this machine: being offline says nothing about it.
      networkMode: "always",
      staleTime: 1000,
      retry: (count, error) => error instanceof ApiError && error.isPassing && count < 2,
      retryDelay: (count) => 500 * 2 ** count,
    },
    mutations: { networkMode: "always" },
  },
});

/** For what changes while one looks: every 2 s, not while the page is hidden. Spread into a query's options. */
export const LIVE = { refetchInterval: 2000, refetchIntervalInBackground: false } as const;
/** For what changes now and then. */
export const SLOW = { refetchInterval: 10_000, refetchIntervalInBackground: false } as const;
