import { queryOptions, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { api, body, isSessionOver } from "./client";
import { ApiError } from "./errors";
import { LIVE } from "./queryClient";
import type { Body } from "./types";

export type User = Body<"UserOut">;

/** Who is logged in; null for nobody. A session that ends keeps the last user, so that the page stays while its password is asked for. */
export const meQuery = queryOptions({
  queryKey: ["me"],
  staleTime: 30_000,
  queryFn: async ({ client, signal }): Promise<User | null> => {
    try {
      return await body(api.GET("/auth/me", { signal }));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      const before = client.getQueryData<User | null>(["me"]);
      if (!before) return null;
      isSessionOver.set(true);
      return before;
    }
  },
});

export function useMaybeMe(): User | null {
  return useQuery(meQuery).data ?? null;
}

/** The user, on pages below the layout, which lets nobody else in. */
export function useMe(): User {
  const me = useMaybeMe();
  if (!me) throw new Error("useMe outside of the pages for users");
  return me;
}

/** Credits, held credits; fresh within 2 s. */
export function walletQuery(userId: number) {
  return queryOptions({
    queryKey: ["wallet", userId],
    queryFn: ({ signal }) => body(api.GET("/auth/wallet/{user_id}", { params: { path: { user_id: userId } }, signal })),
    ...LIVE,
  });
}

export function useWallet(): Body<"WalletOut"> | undefined {
  return useQuery(walletQuery(useMe().id)).data;
}

/** After a login: the new user's own cache, and nothing of somebody else's. */
export function enter(client: QueryClient, user: User): void {
  const before = client.getQueryData<User | null>(meQuery.queryKey);
  if (before && before.id !== user.id) client.clear();
  client.setQueryData(meQuery.queryKey, user);
  isSessionOver.set(false);
  void client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== "me" });
}

export function leave(client: QueryClient): void {
  isSessionOver.set(false);
  client.clear();
  client.setQueryData(meQuery.queryKey, null);
}

export function useLeave(): () => void {
  const client = useQueryClient();
  return () => leave(client);
}

export const isBuyer = (user: User): boolean => user.role !== "seller";
export const isSeller = (user: User): boolean => user.role !== "buyer";
/** Where a user begins: buyers at their jobs, sellers at their machines. */
export const homeOf = (user: User): string => (isBuyer(user) ? "/app/jobs" : "/app/machines");
