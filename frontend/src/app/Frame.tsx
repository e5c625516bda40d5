import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Navigate, Outlet, useLocation } from "react-router";
import { SessionOver } from "@/features/auth/SessionOver";
import { meQuery } from "@/shared/api/session";
import { QueryView } from "@/shared/ui";
import styles from "./Frame.module.css";
import { Nav } from "./Nav";

/** Navigation beside the page. Who is not logged in is sent to the login, and back here from there. */
export function Frame() {
  const query = useQuery(meQuery);
  const { pathname, search } = useLocation();
  const main = useFocusOnNewPage(pathname);
  return (
    <QueryView query={query} what="your account">
      {(user) =>
        user === null ? (
          <Navigate to={`/app/login?next=${encodeURIComponent(pathname + search)}`} replace />
        ) : (
          <div className={styles.frame}>
            <a href="#page" className={styles.skip}>
              Skip to the page
            </a>
            <Nav user={user} />
            <main id="page" ref={main} tabIndex={-1} className={styles.page}>
              <Outlet />
            </main>
            <SessionOver user={user} />
          </div>
        )
      }
    </QueryView>
  );
}

/** Screen readers and the keyboard go on at the new page, not where the old one's link was. */
function useFocusOnNewPage(pathname: string) {
  const main = useRef<HTMLElement>(null);
  const last = useRef(pathname);
  useEffect(() => {
    if (last.current === pathname) return;
    last.current = pathname;
    main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return main;
}
