import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/shared/api/client";
import { enter, useLeave } from "@/shared/api/session";
import type { Body } from "@/shared/api/types";

export function useLogin() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (credentials: Body<"LoginIn">) => body(api.POST("/auth/login", { body: credentials })),
    onSuccess: ({ user }) => enter(client, user),
  });
}

/** Makes the account and logs in to it. */
export function useRegister() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (account: Body<"RegisterIn">) => {
      await body(api.POST("/auth/register", { body: account }));
      return body(api.POST("/auth/login", { body: { email: account.email, password: account.password } }));
    },
    onSuccess: ({ user }) => enter(client, user),
  });
}

export function useLogout() {
  const leave = useLeave();
  return useMutation({ mutationFn: () => api.POST("/auth/logout"), onSuccess: leave });
}

export function useLogoutEverywhere() {
  const leave = useLeave();
  return useMutation({ mutationFn: () => api.POST("/auth/logout_all"), onSuccess: leave });
}

export function useChangePassword() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (passwords: Body<"PasswordIn">) => body(api.POST("/auth/password", { body: passwords })),
    onSuccess: ({ user }) => enter(client, user),
  });
}
