import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { count, plural } from "@/shared/format/numbers";
import { isBuyer, useMe } from "@/shared/api/session";
import { ButtonLink, Card, EmptyState, PageHeader, QueryView } from "@/shared/ui";
import { countStates, filterJobs, readFilter, type StateFilter } from "./filter";
import styles from "./Job.module.css";
import { JobTable } from "./JobTable";
import { jobsQuery, type JobSummary } from "./queries";
import { Switch } from "./Switch";

const NAMES: Record<StateFilter, string> = { all: "All", live: "Running", COMPLETED: "Completed", FAILED: "Failed", CANCELLED: "Cancelled" };

export function JobsPage() {
  const me = useMe();
  const query = useQuery({ ...jobsQuery(me.id), enabled: isBuyer(me) });
  if (!isBuyer(me)) {
    return (
      <>
        <PageHeader title="Jobs" />
        <EmptyState title="Jobs are for buyers">
          <p>Your account is a seller's: your machines and what they earn are under Machines.</p>
        </EmptyState>
      </>
    );
  }
  return (
    <>
      <PageHeader
        title="Jobs"
        actions={
          <ButtonLink to="/app/jobs/new" variant="primary">
            New job
          </ButtonLink>
        }
      />
      <QueryView query={query} what="your jobs">
        {(jobs) => (jobs.length === 0 ? <NoJobs /> : <Jobs jobs={jobs} />)}
      </QueryView>
    </>
  );
}

function Jobs({ jobs }: { jobs: JobSummary[] }) {
  const [params, setParams] = useSearchParams();
  const filter = readFilter(params);
  const counts = countStates(jobs);
  const shown = filterJobs(jobs, filter);
  const change = (name: string, value: string) =>
    setParams(
      (before) => {
        if (value && value !== "all") before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  const options = (Object.keys(NAMES) as StateFilter[]).filter((state) => state === "all" || counts[state] > 0).map((state) => ({ value: state, label: `${NAMES[state]} ${count(counts[state])}` }));
  return (
    <>
      <div className={styles.filters} role="search">
        <Switch label="Show jobs that are" options={options} value={filter.state} onChange={(state) => change("state", state)} />
        <input
          type="search"
          className={styles.search}
          aria-label="Find a job by title, dataset or number"
          placeholder="Title, dataset or number"
          defaultValue={filter.text}
          onChange={(event) => change("q", event.target.value)}
        />
      </div>
      <p className="visually-hidden" role="status">
        {plural(shown.length, "job")} shown
      </p>
      {shown.length === 0 ? (
        <EmptyState title="No job is like that">
          <p>Other filters or fewer letters show more.</p>
        </EmptyState>
      ) : (
        <Card>
          <JobTable jobs={shown} />
        </Card>
      )}
    </>
  );
}

function NoJobs() {
  return (
    <EmptyState
      title="Train your first model"
      action={
        <ButtonLink to="/app/jobs/new" variant="primary">
          New job
        </ButtonLink>
      }
    >
      <ol className={styles.steps}>
        <li>Bring a script that reads data.csv and ends with torch.save(model.state_dict(), "model.pth"), and the CSV. The form has an example to try.</li>
        <li>Choose how many machines share the rows, and how many rounds they take. You see the price before you submit.</li>
        <li>Watch loss and accuracy of every machine here, then download one .pth.</li>
      </ol>
    </EmptyState>
  );
}
