import type { RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "guide", lazy: async () => ({ Component: (await import("./GuidePage")).GuidePage }) },
  { path: "guide/:part", lazy: async () => ({ Component: (await import("./GuidePage")).GuidePage }) },
];
