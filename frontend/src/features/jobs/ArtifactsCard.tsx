import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { linkTo } from "@/shared/api/client";
import type { Body } from "@/shared/api/types";
import { bytes, plural } from "@/shared/format/numbers";
import { plainName } from "@/shared/format/text";
import { Button, Card, QueryView } from "@/shared/ui";
import styles from "./Job.module.css";
import { artifactsQuery, type Job } from "./queries";

type Artifact = Body<"ArtifactView">;
const FEW = 8;
const ORDER = ["final_model", "script", "requirements", "global_model", "update"];

export function ArtifactsCard({ job }: { job: Job }) {
  const [isWhole, setIsWhole] = useState(false);
  const query = useQuery(artifactsQuery(job.id, job.completed_subtasks, job.status));
  return (
    <Card title="Files">
      <QueryView query={query} what="the list of files">
        {({ items }) => {
          const sorted = items.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || (b.round ?? 0) - (a.round ?? 0) || (a.chunk ?? 0) - (b.chunk ?? 0));
          return (
            <>
              <ul className={styles.files}>
                {(isWhole ? sorted : sorted.slice(0, FEW)).map((item) => (
                  <li key={`${item.kind}-${item.round}-${item.chunk}-${item.subtask_id}`}>
                    <a href={linkTo(item.url)} download>
                      {nameOf(item)}
                    </a>
                    <span title={item.sha256 ? `SHA-256 ${item.sha256}` : undefined}>{bytes(item.size)}</span>
                  </li>
                ))}
              </ul>
              {!isWhole && sorted.length > FEW && <Button onClick={() => setIsWhole(true)}>Show {plural(sorted.length - FEW, "more file")}</Button>}
            </>
          );
        }}
      </QueryView>
    </Card>
  );
}

function nameOf(item: Artifact): string {
  switch (item.kind) {
    case "final_model":
      return "Final model";
    case "global_model":
      return `Global model, round ${item.round}`;
    case "update":
      return `Update, round ${item.round}, chunk ${item.chunk}${item.agent_id ? `, ${plainName(item.agent_id)}` : ""}`;
    case "script":
      return "Script";
    case "requirements":
      return "requirements.txt";
    default:
      return plainName(item.kind);
  }
}
