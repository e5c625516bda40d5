import { Outlet, ScrollRestoration } from "react-router";
import { Toasts } from "@/shared/ui";
import { ServerAway } from "./ServerAway";

/** Around every page. */
export function Root() {
  return (
    <>
      <ServerAway />
      <Outlet />
      <Toasts />
      <ScrollRestoration />
    </>
  );
}
