import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { isBuyer, useMe } from "@/shared/api/session";
import { EmptyState, PageHeader, QueryView } from "@/shared/ui";
import { EMPTY } from "./draft";
import { JobForm } from "./JobForm";
import { repeatQuery } from "./queries";
import { isInStep, startIn } from "./rounds";

export function NewJobPage() {
  const [params] = useSearchParams();
  const me = useMe();
  const from = Number(params.get("from"));
  if (!isBuyer(me)) {
    return (
      <>
        <PageHeader title="New job" />
        <EmptyState title="Jobs are for buyers">
          <p>Your account is a seller's. Register a second address as a buyer, or as both, to train models yourself.</p>
        </EmptyState>
      </>
    );
  }
  const start = startIn(params);
  return Number.isInteger(from) && from > 0 ? (
    <Repeated key={`${from} ${start.initialJob} ${start.initialRound}`} jobId={from} start={start} />
  ) : (
    <JobForm key="new" initial={{ ...EMPTY, ...start }} />
  );
}

function Repeated({ jobId, start }: { jobId: number; start: ReturnType<typeof startIn> }) {
  const query = useQuery(repeatQuery(jobId));
  return (
    <QueryView query={query} what={`the script and the settings of job ${jobId}`}>
      {(draft) => <JobForm initial={isInStep(draft) ? draft : { ...draft, ...start }} from={jobId} />}
    </QueryView>
  );
}
