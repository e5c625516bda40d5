import { count } from "@/shared/format/numbers";
import type { Machine } from "@/shared/machines/hardware";
import { Card, CodeBlock, Pill, Plain, Time } from "@/shared/ui";
import styles from "./Machines.module.css";
import { verdictOf } from "./outcomes";

/** What `gridx-worker doctor` found on a machine, and why it gets no work where it gets none. */
export function MachineHealth({ machine }: { machine: Machine }) {
  const { doctor } = machine;
  const verdict = verdictOf(machine);
  return (
    <Card title="Health" note={<Pill tone={verdict.tone} mark={verdict.mark}>{verdict.word}</Pill>}>
      {verdict.why && (
        <p className={styles.warn}>
          <Plain max={600}>{verdict.why}</Plain>
        </p>
      )}
      {machine.accepts === "recipes" && <p className={styles.faint}>It takes only jobs whose script is one of this server’s own recipes.</p>}
      {doctor ? (
        <>
          <p>
            Examined <Time at={doctor.at} />
            {doctor.score !== null && <>; it trains {count(Math.round(doctor.score))} samples a second in the sandbox</>}.
          </p>
          <ul className={styles.checks}>
            {doctor.checks.map((check) => (
              <li key={check.name} data-state={check.problem ? "failed" : "ok"}>
                <Plain max={120}>{check.name}</Plain>
                {check.problem && (
                  <p>
                    <Plain max={500}>{check.problem}</Plain>
                    {check.fix && (
                      <>
                        {" "}
                        To mend it: <Plain max={500}>{check.fix}</Plain>
                      </>
                    )}
                  </p>
                )}
              </li>
            ))}
          </ul>
        </>
      ) : (
        <>
          <p className={styles.faint}>Nobody has examined this machine yet. On it, run:</p>
          <CodeBlock label="command" canCopy text="~/.gridx-worker/venv/bin/gridx-worker doctor" />
        </>
      )}
    </Card>
  );
}
