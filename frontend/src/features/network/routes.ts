import type { RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "network", lazy: async () => ({ Component: (await import("./NetworkPage")).NetworkPage }) },
  { path: "network/:agentId", lazy: async () => ({ Component: (await import("./NodePage")).NodePage }) },
];
