import { useInfiniteQuery } from "@tanstack/react-query";
import { bytes, plural } from "@/shared/format/numbers";
import { Button, Plain, Time } from "@/shared/ui";
import type { Dataset } from "./draft";
import styles from "./NewJob.module.css";
import { datasetsQuery } from "./queries";

/** The datasets that were uploaded before. */
export function DatasetPicker({ onPick }: { onPick: (dataset: Dataset) => void }) {
  const { data, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(datasetsQuery);
  const datasets = data?.pages.flatMap((page) => page.items) ?? [];
  if (datasets.length === 0) return null;
  return (
    <details className={styles.source} open={datasets.length <= 3}>
      <summary>Or use one that you uploaded before ({datasets.length}{hasNextPage ? " and more" : ""})</summary>
      <ul className={styles.picks}>
        {datasets.map((dataset) => (
          <li key={dataset.id}>
            <button type="button" onClick={() => onPick(dataset)}>
              <b>
                <Plain max={60}>{dataset.name}</Plain>
              </b>
              <span>
                {plural(dataset.rows, "row")}, {plural(dataset.columns.length, "column")}, {bytes(dataset.bytes)}, <Time at={dataset.created_at} />
              </span>
            </button>
          </li>
        ))}
      </ul>
      {hasNextPage && (
        <Button onClick={() => void fetchNextPage()} busy={isFetchingNextPage && "Fetching older ones …"}>
          Show older ones
        </Button>
      )}
    </details>
  );
}
