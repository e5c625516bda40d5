import type { RouteObject } from "react-router";

/** Pages without the frame. */
export const guestRoutes: RouteObject[] = [
  { path: "/app/login", lazy: async () => ({ Component: (await import("./LoginPage")).LoginPage }) },
  { path: "/app/register", lazy: async () => ({ Component: (await import("./RegisterPage")).RegisterPage }) },
];

export const routes: RouteObject[] = [{ path: "account", lazy: async () => ({ Component: (await import("./AccountPage")).AccountPage }) }];
