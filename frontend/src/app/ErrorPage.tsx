import { isRouteErrorResponse, Link, useRouteError } from "react-router";
import { Button, PageHeader } from "@/shared/ui";
import styles from "./Frame.module.css";

/** For what no page caught: says so and offers a way on. */
export function ErrorPage() {
  const error = useRouteError();
  if (isRouteErrorResponse(error) && error.status === 404) return <NotFoundPage />;
  const isOldPage = error instanceof Error && /dynamically imported|module script|preload/i.test(error.message);
  return (
    <div className={styles.alone}>
      <PageHeader title={isOldPage ? "There is a newer version of this page" : "This page failed"} />
      <p>{isOldPage ? "The server was updated since you opened it, or it is away." : error instanceof Error ? error.message : "Something unexpected happened."}</p>
      <p>
        <Button variant="primary" onClick={() => globalThis.location.reload()}>
          Load it again
        </Button>
      </p>
    </div>
  );
}

export function NotFoundPage() {
  return (
    <div className={styles.alone}>
      <PageHeader title="There is no such page" />
      <p>
        The address may be mistyped, or what it showed is gone. <Link to="/app">Go to your start page</Link>.
      </p>
    </div>
  );
}
