import { lazy, Suspense, type ComponentProps } from "react";
import type { LineChart as Drawn } from "./LineChart";

const Loaded = lazy(async () => ({ default: (await import("./LineChart")).LineChart }));

/** The chart, fetched with the first page that shows one. */
export function LineChart(props: ComponentProps<typeof Drawn>) {
  return (
    <Suspense fallback={<div style={{ height: (props.height ?? 240) + 26 }} />}>
      <Loaded {...props} />
    </Suspense>
  );
}
