import { useState } from "react";
import { useNavigate } from "react-router";
import { linkTo } from "@/shared/api/client";
import { credits } from "@/shared/format/numbers";
import { Button, ButtonLink, Dialog, Problem, toast } from "@/shared/ui";
import { finalModelLink, hasEnded, isInStep, useCancelJob, useDeleteJob, type Job } from "./queries";

export function JobActions({ job }: { job: Job }) {
  const [asking, setAsking] = useState<"cancel" | "delete" | null>(null);
  const navigate = useNavigate();
  const cancel = useCancelJob(job.id);
  const remove = useDeleteJob(job.id);
  const close = () => setAsking(null);
  const isOver = hasEnded(job);
  return (
    <>
      {isOver ? <Button onClick={() => setAsking("delete")}>Delete</Button> : <Button onClick={() => setAsking("cancel")}>Cancel job</Button>}
      <ButtonLink to={`/app/jobs/compare?a=${job.id}`}>Compare</ButtonLink>
      <ButtonLink to={`/app/jobs/new?from=${job.id}`}>Run again</ButtonLink>
      <Download job={job} />
      <Dialog
        isOpen={asking === "cancel"}
        onClose={close}
        title="Cancel this job?"
        footer={
          <>
            <Button onClick={close}>Let it run</Button>
            <Button variant="danger" busy={cancel.isPending && "Cancelling …"} onClick={() => cancel.mutate(undefined, { onSuccess: close })}>
              Cancel job
            </Button>
          </>
        }
      >
        <p>
          {isInStep(job)
            ? "All ranks are stopped. If rank 0 has sent its model already, it is still verified, and the ranks that ended well are paid. "
            : "Updates that were uploaded already are verified and paid, and the latest global model stays. "}
          What is left of the {credits(job.held)} held comes back to your wallet.
        </p>
        {cancel.error && <Problem error={cancel.error} />}
      </Dialog>
      <Dialog
        isOpen={asking === "delete"}
        onClose={close}
        title="Delete this job and its files?"
        footer={
          <>
            <Button onClick={close}>Keep it</Button>
            <Button
              variant="danger"
              busy={remove.isPending && "Deleting …"}
              onClick={() =>
                remove.mutate(undefined, {
                  onSuccess: () => {
                    toast(`Job ${job.id} and its files are gone`);
                    void navigate("/app/jobs");
                  },
                })
              }
            >
              Delete
            </Button>
          </>
        }
      >
        <p>Its models, logs and metrics go for good. The dataset and the transfers of credits stay.</p>
        {remove.error && <Problem error={remove.error} />}
      </Dialog>
    </>
  );
}

function Download({ job }: { job: Job }) {
  const [isFetching, setIsFetching] = useState(false);
  const onClick = async () => {
    setIsFetching(true);
    try {
      const url = await finalModelLink(job.id);
      if (url) globalThis.location.assign(linkTo(url));
      else toast("There is no final model yet");
    } catch (error) {
      toast(error instanceof Error ? error.message : "The model could not be fetched");
    } finally {
      setIsFetching(false);
    }
  };
  return (
    <Button variant="primary" disabled={job.status !== "COMPLETED"} busy={isFetching && "Fetching …"} onClick={() => void onClick()}>
      Download .pth
    </Button>
  );
}
