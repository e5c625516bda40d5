import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { plural } from "@/shared/format/numbers";
import { Button, ButtonLink, Card, Dialog, Plain, Problem, QueryView, Time, toast } from "@/shared/ui";
import styles from "./Machines.module.css";
import { keysQuery, useRevokeKey, type Key } from "./queries";

export function KeysCard({ isHiddenWhenEmpty = false }: { isHiddenWhenEmpty?: boolean }) {
  const keys = useQuery(keysQuery);
  const [revoking, setRevoking] = useState<Key | null>(null);
  if (isHiddenWhenEmpty && !keys.data?.length) return null;
  return (
    <Card title="Keys" actions={<ButtonLink to="?add">New key</ButtonLink>}>
      <QueryView query={keys} what="your keys">
        {(list) => {
          const valid = list.filter((key) => key.revoked_at === null);
          const revoked = list.filter((key) => key.revoked_at !== null);
          return (
            <>
              {valid.length === 0 && <p className={styles.faint}>No key is valid. Make one to add a machine, or to take one back that lost its token.</p>}
              <ul className={styles.keys}>
                {valid.map((key) => (
                  <KeyRow key={key.id} item={key} onRevoke={() => setRevoking(key)} />
                ))}
              </ul>
              {revoked.length > 0 && (
                <details className={styles.more}>
                  <summary>{plural(revoked.length, "revoked key")}</summary>
                  <ul className={styles.keys}>
                    {revoked.map((key) => (
                      <KeyRow key={key.id} item={key} />
                    ))}
                  </ul>
                </details>
              )}
            </>
          );
        }}
      </QueryView>
      <Revoke item={revoking} onClose={() => setRevoking(null)} />
    </Card>
  );
}

function KeyRow({ item, onRevoke }: { item: Key; onRevoke?: () => void }) {
  return (
    <li>
      <div>
        <Plain max={80}>{item.label}</Plain>
        <small className={styles.second}>
          {item.revoked_at ? "revoked " : "made "}
          <Time at={item.revoked_at ?? item.created_at} />
        </small>
      </div>
      {onRevoke && (
        <Button variant="quiet" className={styles.inCell} onClick={onRevoke} aria-label={`Revoke ${item.label}`}>
          Revoke
        </Button>
      )}
    </li>
  );
}

function Revoke({ item, onClose }: { item: Key | null; onClose: () => void }) {
  const revoke = useRevokeKey();
  const close = () => {
    revoke.reset();
    onClose();
  };
  const onRevoke = (id: number) =>
    revoke.mutate(id, {
      onSuccess: () => {
        toast("The key is revoked; the machines that used it lost their tokens");
        close();
      },
    });
  return (
    <Dialog
      isOpen={item !== null}
      onClose={close}
      title="Revoke this key?"
      footer={
        item && (
          <>
            <Button onClick={close}>Keep it</Button>
            <Button variant="danger" onClick={() => onRevoke(item.id)} busy={revoke.isPending && "Revoking …"}>
              Revoke the key
            </Button>
          </>
        )
      }
    >
      {item && (
        <>
          <p>
            Machines that registered with{" "}
            <b>
              <Plain max={80}>{item.label}</Plain>
            </b>{" "}
            lose their tokens at once, and what they work on goes to other machines. No new machine can use the key. This cannot be undone; another key can be made at any time.
          </p>
          {revoke.error && <Problem error={revoke.error} />}
        </>
      )}
    </Dialog>
  );
}
