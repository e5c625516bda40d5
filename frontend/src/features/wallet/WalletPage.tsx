import { useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";
import { isBuyer, isSeller, useMe, useWallet } from "@/shared/api/session";
import { count } from "@/shared/format/numbers";
import { sentence } from "@/shared/format/text";
import { ButtonLink, Card, cx, PageHeader, Plain, QueryView, Stack, Table, Time, type Column } from "@/shared/ui";
import { detailOf, jobOf, kindOf, linkOf, NAMES, signed } from "./movements";
import { transfersQuery, type Movement } from "./queries";
import styles from "./Wallet.module.css";

export function WalletPage() {
  return (
    <>
      <PageHeader title="Wallet" />
      <Stack>
        <Balance />
        <Movements />
      </Stack>
    </>
  );
}

function Balance() {
  const me = useMe();
  const wallet = useWallet();
  const free = wallet?.credits ?? me.credits;
  const held = wallet?.held ?? 0;
  const share = free + held > 0 ? free / (free + held) : 1;
  return (
    <section className={styles.balance} aria-label="Balance">
      <div className={styles.free}>
        <span>Balance</span>
        <b>{count(free)}</b>
        <span>credits to spend</span>
      </div>
      <div className={styles.held}>
        <span>Held for jobs</span>
        <b>{wallet ? count(held) : "–"}</b>
        <span>{held > 0 ? "in escrow until their work is verified" : "nothing is in escrow"}</span>
      </div>
      <div className={styles.words}>
        {isBuyer(me) && <p>A job’s price is held when it is submitted. Verified work is paid from it; what is left when the job ends comes back.</p>}
        {isSeller(me) && <p>A machine earns a credit for every hour of a job’s time limit, once the server has verified what it trained.</p>}
      </div>
      {held > 0 && (
        <div className={styles.bar} role="img" aria-label={`${count(free)} credits to spend, ${count(held)} held`}>
          <i style={{ width: `${share * 100}%` }} />
        </div>
      )}
    </section>
  );
}

function Movements() {
  const me = useMe();
  const [params] = useSearchParams();
  const before = Number(params.get("before")) || null;
  const query = useQuery(transfersQuery(me.id, before));
  return (
    <Card title="Movements" note={before ? "older ones" : "newest first"}>
      <QueryView query={query} what="the movements">
        {({ items, next }) => (
          <>
            {items.length > 0 ? (
              <Table caption="Movements of your wallet, newest first" columns={COLUMNS} rows={items} rowKey={(movement) => movement.id} />
            ) : (
              <p className={styles.faint}>{before ? "There is nothing older." : "No credits have moved yet."}</p>
            )}
            {(before !== null || next !== null) && (
              <nav className={styles.paging} aria-label="Pages of movements">
                {before !== null && <ButtonLink to={{ search: "" }}>Newest</ButtonLink>}
                {next !== null && <ButtonLink to={{ search: `?before=${next}` }}>Older</ButtonLink>}
              </nav>
            )}
          </>
        )}
      </QueryView>
    </Card>
  );
}

const COLUMNS: Column<Movement>[] = [
  { key: "what", header: "What", isTitle: true, width: "11rem", cell: (movement) => NAMES[kindOf(movement)] },
  { key: "why", header: "For", cell: (movement) => <Why movement={movement} /> },
  { key: "when", header: "When", width: "9rem", cell: (movement) => <Time at={movement.created_at} /> },
  {
    key: "amount",
    header: "Credits",
    align: "right",
    width: "7rem",
    cell: (movement) => <b className={cx(styles.amount, movement.amount > 0 && styles.plus)}>{signed(movement.amount)}</b>,
  },
];

function Why({ movement }: { movement: Movement }) {
  const job = jobOf(movement);
  const link = linkOf(movement);
  const detail = detailOf(movement);
  return (
    <>
      {link && <Link to={link}>Job {job}</Link>}
      {detail && (
        <span className={cx(link && styles.detail)}>
          <Plain>{link ? detail : sentence(detail)}</Plain>
        </span>
      )}
      {!link && !detail && "–"}
    </>
  );
}
