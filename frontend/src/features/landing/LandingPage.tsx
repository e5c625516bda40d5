import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { meQuery } from "@/shared/api/session";
import { count } from "@/shared/format/numbers";
import { Brand, ButtonLink } from "@/shared/ui";
import styles from "./Landing.module.css";
import { DealPicture, HeroPicture, MergePicture, TrainPicture } from "./pictures";
import { summaryQuery } from "./queries";

export function LandingPage() {
  const { data: me } = useQuery(meQuery);
  return (
    <div className={styles.page}>
      <title>Grid-X · train models on machines that would otherwise idle</title>
      <header className={styles.top}>
        <Brand to="/" />
        <nav aria-label="Main">
          <a href="/docs">API</a>
          {me ? (
            <ButtonLink to="/app" variant="primary">
              Open Grid-X
            </ButtonLink>
          ) : (
            <ButtonLink to="/app/login">Log in</ButtonLink>
          )}
        </nav>
      </header>
      <main>
        <section className={styles.hero}>
          <div>
            <h1>Train your model on machines that would otherwise idle.</h1>
            <p>
              Bring a PyTorch script and a CSV. Grid-X deals the rows to other people's machines, averages what they learn, round after round, and hands you one <code>.pth</code>.
            </p>
            <div className={styles.buttons}>
              <ButtonLink to={me ? "/app" : "/app/register?role=buyer"} variant="primary">
                Train a model
              </ButtonLink>
              <ButtonLink to={me ? "/app" : "/app/register?role=seller"}>Lend a machine</ButtonLink>
            </div>
            <p className={styles.small}>100 credits to begin with. No mail, no card.</p>
          </div>
          <HeroPicture />
        </section>
        <Numbers />
        <section aria-labelledby="how">
          <h2 id="how">How it works</h2>
          <ol className={styles.steps}>
            <Step picture={<DealPicture />} title="Your rows are dealt">
              A CSV becomes as many chunks as you like. No machine sees more than the chunk it trains on.
            </Step>
            <Step picture={<TrainPicture />} title="Machines train, walled in">
              Each runs your script on its chunk inside a Docker sandbox without a network, starting from the same model.
            </Step>
            <Step picture={<MergePicture />} title="Updates become one model">
              What comes back is checked, averaged by rows and sent out again. Only work that passes the checks is paid.
            </Step>
          </ol>
        </section>
        <section className={styles.sides} aria-label="Two sides">
          <div>
            <h2>For those who train</h2>
            <ul>
              <li>A script that saves a state_dict runs unchanged</li>
              <li>The price is known before you submit; what is not used comes back</li>
              <li>Watch loss and accuracy of every machine while it learns</li>
            </ul>
          </div>
          <div>
            <h2>For those who lend</h2>
            <ul>
              <li>One command and a key; the machine asks for work by itself</li>
              <li>You set how many cores and how much memory it may use</li>
              <li>Every verified chunk earns credits, which train your own models</li>
            </ul>
          </div>
        </section>
      </main>
      <footer className={styles.foot}>
        Made for research groups that share machines. <a href="/docs">API reference</a>
      </footer>
    </div>
  );
}

function Step({ picture, title, children }: { picture: ReactNode; title: string; children: ReactNode }) {
  return (
    <li>
      {picture}
      <h3>{title}</h3>
      <p>{children}</p>
    </li>
  );
}

/** The network as it is now. */
function Numbers() {
  const { data } = useQuery(summaryQuery);
  const items = [
    ["machines online", data?.agents.online],
    ["of them idle", data?.agents.idle],
    ["cores", data?.cores],
    ["jobs training", data?.jobs.running],
    ["models finished", data?.jobs.completed],
  ] as const;
  return (
    <section className={styles.numbers} aria-label="The network now">
      <dl>
        {items.map(([name, value]) => (
          <div key={name}>
            <dd>{value === undefined ? "–" : count(value)}</dd>
            <dt>{name}</dt>
          </div>
        ))}
      </dl>
    </section>
  );
}
