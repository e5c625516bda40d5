import type { UseQueryResult } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";
import { sentence } from "@/shared/format/text";
import { Button } from "./Button";
import styles from "./Feedback.module.css";

/** Nothing at first, then words: what is being fetched, `your jobs`. */
export function Loading({ what }: { what: string }) {
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLong(true), 700);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className={styles.loading} role="status">
      {isLong && `Fetching ${what} …`}
    </div>
  );
}

/** What went wrong, in the server's words. */
export function Problem({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div className={styles.problem} role="alert">
      <p>{sentence(error.message)}</p>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** A query's data once there is any; what was fetched last stays while the server is away. */
export function QueryView<Data>({ query, what, children }: { query: UseQueryResult<Data>; what: string; children: (data: Data) => ReactNode }) {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) return <Problem error={query.error} retry={() => void query.refetch()} />;
  return <Loading what={what} />;
}
