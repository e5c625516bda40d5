import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { API_URL, isServerAway } from "@/shared/api/client";
import { useSignal } from "@/shared/api/signal";
import styles from "./Frame.module.css";

const LOOK_EVERY_MS = 1500;

/** A line across the page while the server does not answer. It looks again and again, and refreshes everything once it is back. */
export function ServerAway() {
  const isAway = useSignal(isServerAway);
  const client = useQueryClient();
  useEffect(() => {
    if (!isAway) return;
    const timer = setInterval(() => {
      void fetch(`${API_URL}/health`, { cache: "no-store" }).then(
        (answer) => {
          if (!answer.ok) return;
          isServerAway.set(false);
          void client.invalidateQueries();
        },
        () => undefined,
      );
    }, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, [isAway, client]);
  return (
    <div role="status" className={styles.away}>
      {isAway && <p>The server cannot be reached. What you see may be old; this page goes on by itself once it is back.</p>}
    </div>
  );
}
