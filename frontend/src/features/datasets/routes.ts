import type { RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "datasets", lazy: async () => ({ Component: (await import("./DatasetsPage")).DatasetsPage }) }];
