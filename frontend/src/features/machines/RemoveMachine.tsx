import type { Machine } from "@/shared/machines/hardware";
import { Button, Dialog, Plain, Problem, toast } from "@/shared/ui";
import { useRemoveMachine } from "./queries";

/** Asks before a machine is taken off the list. Open while there is a machine. */
export function RemoveMachine({ machine, onClose, onRemoved }: { machine: Machine | undefined; onClose: () => void; onRemoved?: () => void }) {
  const remove = useRemoveMachine();
  const close = () => {
    remove.reset();
    onClose();
  };
  // By the promise: the list is fetched anew first, and what showed the machine may be gone by then, with callbacks of its own.
  const onRemove = (id: string) =>
    void remove.mutateAsync(id).then(
      () => {
        toast(`${id} was removed`);
        close();
        onRemoved?.();
      },
      () => undefined,
    );
  return (
    <Dialog
      isOpen={machine !== undefined}
      onClose={close}
      title="Remove this machine?"
      footer={
        machine && (
          <>
            <Button onClick={close}>Keep it</Button>
            <Button variant="danger" onClick={() => onRemove(machine.id)} busy={remove.isPending && "Removing …"}>
              Remove {machine.id}
            </Button>
          </>
        )
      }
    >
      {machine && (
        <>
          <p>
            <b>
              <Plain>{machine.id}</Plain>
            </b>{" "}
            leaves your list and the network, and its token ends.{" "}
            {machine.status === "BUSY"
              ? "It is working right now: that piece of work goes to another machine, and you are not paid for it."
              : "What it earned stays in your wallet."}{" "}
            With a key of yours it can come back under the same name.
          </p>
          {remove.error && <Problem error={remove.error} />}
        </>
      )}
    </Dialog>
  );
}
