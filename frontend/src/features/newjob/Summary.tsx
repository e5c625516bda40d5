import { Link } from "react-router";
import { count, credits } from "@/shared/format/numbers";
import { useWallet } from "@/shared/api/session";
import { Button, Card, Facts } from "@/shared/ui";
import { planOf, type Draft } from "./draft";
import styles from "./NewJob.module.css";
import { priceInWords, priceOf } from "./price";

interface Props {
  draft: Draft;
  isSending: boolean;
  error: string | null;
  missing: (string | undefined)[];
  isUploading: boolean;
}

/** Price, balance, what is missing, and the button. */
export function Summary({ draft, isSending, error, missing, isUploading }: Props) {
  const wallet = useWallet();
  const plan = planOf(draft);
  const price = priceOf(plan);
  const isKnown = Number.isFinite(price) && price > 0;
  const rest = wallet && isKnown ? wallet.credits - price : null;
  const isPoor = rest !== null && rest < 0;
  return (
    <Card title="Price">
      <p className={styles.price}>
        {isKnown ? count(price) : "–"} <span>{price === 1 ? "credit" : "credits"} at most</span>
      </p>
      {isKnown && <p className={styles.small}>{priceInWords(plan)}</p>}
      <div className={styles.facts}>
        <Facts
          items={[
            ["In your wallet", wallet ? count(wallet.credits) : "…"],
            ["Left after submitting", rest === null ? "–" : count(rest)],
          ]}
        />
      </div>
      <Button type="submit" variant="primary" className={styles.submit} busy={isSending && "Submitting …"}>
        Submit job
      </Button>
      {isPoor && (
        <p className={styles.error}>
          {credits(-rest)} short. Take fewer {plan.isInStep ? "ranks" : "rounds or chunks"}, or <Link to="/app/wallet">see your wallet</Link>.
        </p>
      )}
      {error && (
        <p className={styles.error} role="alert">
          {error}
        </p>
      )}
      {missing.length > 0 && (
        <p className={styles.error} role="alert">
          {isUploading && missing.length === 1 ? "The CSV is still on its way" : missing.length === 1 ? missing[0] : `${missing.length} things are still missing; they are marked`}
        </p>
      )}
      <p className={styles.small}>The price is held until the work is verified. What is not used comes back.</p>
    </Card>
  );
}
