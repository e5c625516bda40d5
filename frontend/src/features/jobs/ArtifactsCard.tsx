import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { linkTo } from "@/shared/api/client";
import type { Body } from "@/shared/api/types";
import { bytes, plural } from "@/shared/format/numbers";
import { plainName } from "@/shared/format/text";
import { exact, parseTime } from "@/shared/format/times";
import { Button, Card, QueryView } from "@/shared/ui";
import styles from "./Job.module.css";
import { artifactsQuery, isInStep, type Job } from "./queries";
import { trainOnPath } from "./RoundsCard";

type Artifact = Body<"ArtifactView">;
const FEW = 8;
/** A round's model, from which another job can start. */
const ROUND_MODELS = new Set(["best_model", "global_model"]);
const ORDER = ["final_model", "safetensors", "best_model", "output", "script", "schema", "requirements", "initial_model", "global_model", "update"];

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
                  <li key={`${item.kind}-${item.round}-${item.chunk}-${item.subtask_id}-${item.filename}`}>
                    <span className={styles.fileName}>
                      <a href={linkTo(item.url)} download>
                        {nameOf(item, isInStep(job))}
                      </a>
                      {item.round && ROUND_MODELS.has(item.kind) && !isInStep(job) ? (
                        <>
                          {" "}
                          <Link to={trainOnPath(job.id, item.round)} aria-label={`Train on from round ${item.round}`}>
                            train on
                          </Link>
                        </>
                      ) : null}
                    </span>
                    <span title={factsOf(item)}>{bytes(item.size)}</span>
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

/** Everything else that is known of a file, for those who look closely. */
function factsOf(item: Artifact): string {
  const facts = [item.epoch !== null && item.epoch !== undefined && `epoch ${item.epoch}`, item.created_at && exact(parseTime(item.created_at)), item.sha256 && `SHA-256 ${item.sha256}`];
  return facts.filter(Boolean).join(", ");
}

function nameOf(item: Artifact, inStep: boolean): string {
  const place = inStep ? `rank ${item.chunk}` : `round ${item.round}, chunk ${item.chunk}`;
  switch (item.kind) {
    case "final_model":
      return "Final model";
    case "safetensors":
      return "Final model as safetensors";
    case "best_model":
      return `Best model, round ${item.round}`;
    case "initial_model":
      return "Initial model";
    case "output":
      return `${plainName(item.filename)}, ${place}${item.agent_id ? `, ${plainName(item.agent_id)}` : ""}`;
    case "schema":
      return "What is known of the columns (schema.json)";
    case "global_model":
      return inStep ? "Global model" : `Global model, round ${item.round}`;
    case "update":
      return `Update, ${place}${item.agent_id ? `, ${plainName(item.agent_id)}` : ""}`;
    case "script":
      return "Script";
    case "requirements":
      return "requirements.txt";
    default:
      return plainName(item.kind);
  }
}
