import type { RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "jobs/new", lazy: async () => ({ Component: (await import("./NewJobPage")).NewJobPage }) }];
