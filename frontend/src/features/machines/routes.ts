import type { RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "machines", lazy: async () => ({ Component: (await import("./MachinesPage")).MachinesPage }) },
  { path: "machines/:agentId", lazy: async () => ({ Component: (await import("./MachinePage")).MachinePage }) },
];
