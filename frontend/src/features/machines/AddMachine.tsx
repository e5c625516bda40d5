import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";
import { Link } from "react-router";
import { API_URL } from "@/shared/api/client";
import { fieldErrors } from "@/shared/api/errors";
import { sentence } from "@/shared/format/text";
import { hardwareLine, isolationOf, type Machine } from "@/shared/machines/hardware";
import { MachineStatePill } from "@/shared/machines/MachineState";
import { Button, Card, CodeBlock, CopyId, Field, Plain, Problem } from "@/shared/ui";
import { addCommand, arrivals, isLoopback } from "./arrivals";
import styles from "./Machines.module.css";
import { useCreateKey, workerQuery, type NewKey } from "./queries";

interface AddMachineProps {
  /** The provider's machines as they are now; the page looks again every two seconds. */
  machines: Machine[];
  onClose: () => void;
}

/** Three steps: a key, a command, and the machine appears. The key is in this page's memory alone and gone with it. */
export function AddMachine({ machines, onClose }: AddMachineProps) {
  const [made, setMade] = useState<{ key: NewKey; before: Machine[] } | null>(null);
  const came = made ? arrivals(made.before, machines) : [];
  return (
    <Card title="Add a machine" actions={<Button onClick={onClose}>{came.length > 0 ? "Done" : "Close"}</Button>}>
      <ol className={styles.wizard}>
        <li data-state={made ? "done" : "now"}>
          <h3>Make a key</h3>
          {made ? <MadeKey item={made.key} /> : <KeyForm onMade={(key) => setMade({ key, before: machines })} />}
        </li>
        <li data-state={came.length > 0 ? "done" : made ? "now" : "later"}>
          <h3>Run one command on the machine</h3>
          {made ? <Command secret={made.key.key} /> : <p>It downloads the worker from this server, installs it into a folder of its own, and starts it with the key.</p>}
        </li>
        <li data-state={came.length > 0 ? "done" : made ? "waiting" : "later"}>
          <h3>The machine appears</h3>
          <div role="status">{came.length > 0 ? <Came machines={came} /> : <p>{made ? "Waiting for it. This page notices by itself; the key stays valid when you leave." : "Here, a few seconds after the worker has started."}</p>}</div>
        </li>
      </ol>
    </Card>
  );
}

function KeyForm({ onMade }: { onMade: (key: NewKey) => void }) {
  const create = useCreateKey();
  const [label, setLabel] = useState("");
  const errors = fieldErrors(create.error, ["label"]);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(label.trim(), { onSuccess: onMade });
  };
  return (
    <form onSubmit={onSubmit} className={styles.form}>
      <Field label="Name of the key" hint="For you alone: a room, a purpose, one machine or many." error={errors["label"]}>
        {(control) => (
          // oxlint-disable-next-line jsx-a11y/no-autofocus -- the form opens at a click on "Add a machine" and is what that click asked for
          <input {...control} value={label} onChange={(event) => setLabel(event.target.value)} maxLength={200} required autoFocus autoComplete="off" placeholder="Laboratory, second floor" />
        )}
      </Field>
      <Button type="submit" variant="primary" disabled={label.trim() === ""} busy={create.isPending && "Making it …"}>
        Make the key
      </Button>
      {errors[""] && create.error && <Problem error={create.error} />}
    </form>
  );
}

function MadeKey({ item }: { item: NewKey }) {
  return (
    <>
      <p>
        <b>
          <Plain max={80}>{item.label}</Plain>
        </b>
        : shown this once. The server keeps only its hash.
      </p>
      <p className={styles.secret}>
        <CopyId value={item.key} label="the key" />
      </p>
    </>
  );
}

function Command({ secret }: { secret: string }) {
  const worker = useQuery(workerQuery);
  const server = API_URL || globalThis.location.origin;
  const box = useRef<HTMLDivElement>(null);
  // The form that had the focus is gone; the keyboard goes on here.
  useEffect(() => box.current?.focus(), []);
  if (worker.isError) {
    return (
      <div ref={box} tabIndex={-1} className={styles.command}>
        <p className={styles.warn}>{sentence(worker.error.message)}.</p>
        <p>A machine that has the worker already, such as from a checkout of Grid-X, is added with:</p>
        <CodeBlock label="command" canCopy text={`GRIDX_KEY=${secret} gridx-worker run --server ${server}`} />
      </div>
    );
  }
  return (
    <div ref={box} tabIndex={-1} className={styles.command}>
      <CodeBlock label="command" canCopy text={addCommand(server, secret)} />
      <p>
        It needs Linux or macOS, Python 3.11 or newer, and Docker. The first start offers to build the sandbox image, which takes some minutes.{" "}
        <Link to="/app/guide/providers">Everything about it</Link>
      </p>
      {isLoopback(server) && (
        <p className={styles.warn}>
          <code>{server}</code> means this very computer. For a machine elsewhere, open this page under the server’s address in your network.
        </p>
      )}
      <details className={styles.more}>
        <summary>Without Docker, for your own code only</summary>
        <p>
          Scripts then run as ordinary processes of your user: they can read your files and use your network. It needs a Python that has torch, numpy and pandas.
        </p>
        <CodeBlock label="command without Docker" canCopy text={addCommand(server, secret, true)} />
      </details>
    </div>
  );
}

function Came({ machines }: { machines: readonly Machine[] }) {
  return (
    <ul className={styles.came}>
      {machines.map((machine) => (
        <li key={machine.id}>
          <MachineStatePill state={machine.status} />
          <Link to={`/app/machines/${encodeURIComponent(machine.id)}`}>
            <Plain>{machine.id}</Plain>
          </Link>
          <span>
            <Plain>{hardwareLine(machine)}</Plain> · {isolationOf(machine).name}
          </span>
        </li>
      ))}
    </ul>
  );
}
