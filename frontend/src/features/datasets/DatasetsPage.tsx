import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { bytes, count, plural } from "@/shared/format/numbers";
import { plainName, sentence } from "@/shared/format/text";
import { isBuyer, useMe } from "@/shared/api/session";
import { Button, ButtonLink, Card, Dialog, EmptyState, Loading, PageHeader, Plain, Problem, Table, Time, toast, type Column } from "@/shared/ui";
import styles from "./Datasets.module.css";
import { datasetsQuery, useDeleteDataset, type Dataset } from "./queries";

export function DatasetsPage() {
  const me = useMe();
  const query = useInfiniteQuery({ ...datasetsQuery, enabled: isBuyer(me) });
  const [asking, setAsking] = useState<Dataset | null>(null);
  const datasets = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <PageHeader
        title="Datasets"
        actions={
          <ButtonLink to="/app/jobs/new" variant="primary">
            New job
          </ButtonLink>
        }
      />
      {!query.data && (query.error ? <Problem error={query.error} retry={() => void query.refetch()} /> : <Loading what="your datasets" />)}
      {query.data && datasets.length === 0 && (
        <EmptyState title="No datasets yet" action={<ButtonLink to="/app/jobs/new">Upload one with a new job</ButtonLink>}>
          <p>A dataset is a CSV that you uploaded for a job. It stays here, so that the next job can use it at once.</p>
        </EmptyState>
      )}
      {datasets.length > 0 && (
        <Card>
          <Table caption="Your datasets, newest first" columns={columnsOf(setAsking)} rows={datasets} rowKey={(row) => row.id} />
          {query.hasNextPage && (
            <Button onClick={() => void query.fetchNextPage()} busy={query.isFetchingNextPage && "Fetching older ones …"}>
              Show older ones
            </Button>
          )}
        </Card>
      )}
      <DeleteDialog dataset={asking} onClose={() => setAsking(null)} />
    </>
  );
}

function columnsOf(ask: (dataset: Dataset) => void): Column<Dataset>[] {
  return [
    {
      key: "name",
      header: "Name",
      isTitle: true,
      width: "38%",
      cell: (row) => (
        <>
          <Plain max={80}>{row.name}</Plain>
          <details className={styles.details}>
            <summary>{plural(row.columns.length, "column")}{row.warnings.length > 0 ? `, ${plural(row.warnings.length, "warning")}` : ""}</summary>
            <p>
              <Plain max={2000}>{row.columns.slice(0, 200).join(", ")}</Plain>
            </p>
            {row.warnings.map((words) => (
              <p key={words} className={styles.warning}>
                {sentence(words)}
              </p>
            ))}
          </details>
        </>
      ),
    },
    { key: "rows", header: "Rows", align: "right", cell: (row) => count(row.rows) },
    { key: "size", header: "Size", align: "right", cell: (row) => bytes(row.bytes) },
    { key: "added", header: "Added", align: "right", cell: (row) => <Time at={row.created_at} /> },
    {
      key: "actions",
      header: "Actions",
      hideHeader: true,
      align: "right",
      cell: (row) => (
        <Button variant="quiet" className={styles.inCell} aria-label={`Delete ${plainName(row.name)}`} onClick={() => ask(row)}>
          Delete
        </Button>
      ),
    },
  ];
}

function DeleteDialog({ dataset, onClose }: { dataset: Dataset | null; onClose: () => void }) {
  const remove = useDeleteDataset();
  const onDelete = () => {
    if (!dataset) return;
    remove.mutate(dataset.id, {
      onSuccess: () => {
        toast("The dataset is gone");
        onClose();
      },
    });
  };
  return (
    <Dialog
      isOpen={dataset !== null}
      onClose={onClose}
      title="Delete this dataset?"
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button variant="danger" onClick={onDelete} busy={remove.isPending && "Deleting …"}>
            Delete
          </Button>
        </>
      }
    >
      <p>
        <Plain max={80}>{dataset?.name ?? ""}</Plain> can no longer be used for new jobs. Jobs that were made from it go on.
      </p>
      {remove.error && <Problem error={remove.error} />}
    </Dialog>
  );
}
