import type { RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "wallet", lazy: async () => ({ Component: (await import("./WalletPage")).WalletPage }) }];
