import { createBrowserRouter, Navigate, type RouteObject } from "react-router";
import { routes as auth, guestRoutes } from "@/features/auth/routes";
import { routes as datasets } from "@/features/datasets/routes";
import { routes as guide } from "@/features/guide/routes";
import { routes as jobs } from "@/features/jobs/routes";
import { routes as landing } from "@/features/landing/routes";
import { routes as machines } from "@/features/machines/routes";
import { routes as network } from "@/features/network/routes";
import { routes as newJob } from "@/features/newjob/routes";
import { routes as wallet } from "@/features/wallet/routes";
import { homeOf, useMe } from "@/shared/api/session";
import { ErrorPage, NotFoundPage } from "./ErrorPage";
import { Frame } from "./Frame";
import { Root } from "./Root";

function Home() {
  return <Navigate to={homeOf(useMe())} replace />;
}

/** Pages for users, below the frame with the navigation. Later features add their routes here and, if need be, a line in Nav.tsx. */
const pages: RouteObject[] = [
  { index: true, Component: Home },
  ...newJob,
  ...jobs,
  ...datasets,
  ...machines,
  ...network,
  ...wallet,
  ...guide,
  ...auth,
  { path: "*", Component: NotFoundPage },
];

export const router = createBrowserRouter([
  {
    Component: Root,
    ErrorBoundary: ErrorPage,
    HydrateFallback: () => null,
    children: [
      ...landing,
      ...guestRoutes,
      { path: "/app", Component: Frame, children: [{ ErrorBoundary: ErrorPage, children: pages }] },
      { path: "*", Component: NotFoundPage },
    ],
  },
]);
