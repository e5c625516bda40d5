import type { RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "jobs", lazy: async () => ({ Component: (await import("./JobsPage")).JobsPage }) },
  { path: "jobs/compare", lazy: async () => ({ Component: (await import("./ComparePage")).ComparePage }) },
  { path: "jobs/:jobId", lazy: async () => ({ Component: (await import("./JobPage")).JobPage }) },
];
