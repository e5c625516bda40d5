import { useState } from "react";
import { plural } from "@/shared/format/numbers";
import { sentence } from "@/shared/format/text";
import { Button, Card, cx, Plain, Time } from "@/shared/ui";
import styles from "./Job.module.css";
import type { Job } from "./queries";

const FEW = 12;

export function TimelineCard({ job }: { job: Job }) {
  const [isWhole, setIsWhole] = useState(false);
  const all = job.events.toReversed();
  const shown = isWhole ? all : all.slice(0, FEW);
  return (
    <Card title="Timeline" note="newest first">
      <ol className={styles.timeline}>
        {shown.map((event) => (
          <li key={event.id} className={cx(event.what === "job" && styles.major, (event.new === "FAILED" || event.new === "CANCELLED") && styles.bad, event.new === "COMPLETED" && styles.well)}>
            <Plain max={220}>{sentence(event.text.split("\n")[0] ?? "")}</Plain>
            <span>
              <Time at={event.at} />
            </span>
          </li>
        ))}
      </ol>
      {!isWhole && all.length > FEW && <Button onClick={() => setIsWhole(true)}>Show {plural(all.length - FEW, "earlier event")}</Button>}
    </Card>
  );
}
