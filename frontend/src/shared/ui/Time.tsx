import { useSyncExternalStore } from "react";
import { signal, useSignal } from "@/shared/api/signal";
import { exact, parseTime, relative } from "@/shared/format/times";

const now = signal(new Date());
setInterval(() => {
  if (!document.hidden) now.set(new Date());
}, 1000);

/** The time, once a second. */
export const useNow = (): Date => useSignal(now);

/** How long ago; the exact time on hover. */
export function Time({ at, never = "–" }: { at: string | null | undefined; never?: string }) {
  // The words are the state: a time that reads the same as a second ago is not drawn again.
  const words = useSyncExternalStore(now.subscribe, () => (at ? relative(parseTime(at), now.get()) : never));
  if (!at) return <>{never}</>;
  const date = parseTime(at);
  return (
    <time dateTime={date.toISOString()} title={exact(date)}>
      {words}
    </time>
  );
}
