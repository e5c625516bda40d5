import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import type { ReactElement } from "react";
import { MemoryRouter } from "react-router";
import { afterEach, describe, expect, it } from "vitest";
import { ContributionsCard } from "./ContributionsCard";
import { attemptOf, jobOf, roundOf, scoredRound, subtaskOf } from "./fixtures";
import { ModelCard } from "./ModelCard";
import { cardQuery } from "./queries";
import { RoundsCard } from "./RoundsCard";
import { SettingsCard } from "./SettingsCard";
import { SubtasksCard } from "./SubtasksCard";
import { Warnings } from "./Warnings";

afterEach(cleanup);

const show = (card: ReactElement) => render(<MemoryRouter>{card}</MemoryRouter>);
const row = (name: RegExp) => screen.getByRole("row", { name });
const scored = { evaluations: 2, held_out_share: 0.2 };

describe("the rounds", () => {
  const job = jobOf({
    ...scored,
    current_round: 3,
    best_round: 1,
    round_list: [scoredRound(1, { accuracy: 0.9, loss: 0.25, f1: 0.875 }), scoredRound(2, { accuracy: 0.8, loss: 0.5 }), roundOf(3, { closed_at: null })],
  });

  it("show what held-out rows say, by whom, and which was best", () => {
    show(<RoundsCard job={job} />);
    const cells = within(row(/^Round 1/)).getAllByRole("cell").map((cell) => cell.textContent);
    expect(cells.slice(0, 3)).toEqual(["Round 1best", "90.0 %loss 0.250, f1 0.875", "ada, bob on 20 rows"]);
    expect(screen.getAllByText("best")).toHaveLength(1);
    expect(screen.queryByRole("row", { name: /^Round 3/ })).toBeNull();
  });

  it("warn in words where two machines differ", () => {
    const differing = scoredRound(1, { accuracy: 0.9 }, { evaluation: { metrics: { accuracy: 0.9 }, rows: 20, agents: ["ada", "bob"], differ: ["accuracy"] } });
    show(<RoundsCard job={jobOf({ ...scored, round_list: [differing, scoredRound(2, { accuracy: 0.9 })] })} />);
    expect(within(row(/^Round 1/)).getByText(/the numbers of ada and bob differ in accuracy: their mean is shown/)).toBeTruthy();
    expect(within(row(/^Round 2/)).queryByText(/differ/)).toBeNull();
  });

  it("say when one is being scored, or nobody did", () => {
    const rounds = [roundOf(1), roundOf(2)];
    show(<RoundsCard job={jobOf({ ...scored, current_round: 2, round_list: rounds })} />);
    expect(within(row(/^Round 2/)).getByText("being scored")).toBeTruthy();
    expect(within(row(/^Round 1/)).getByText("not scored")).toBeTruthy();
  });

  it("lead to a form that trains on from each model", () => {
    show(<RoundsCard job={job} />);
    expect(screen.getByRole("link", { name: "Train on from round 2" }).getAttribute("href")).toBe("/app/jobs/new?from=7&initial_job_id=7&initial_round=2");
  });

  it("have no column for held-out rows where there are none, nor a link without a model", () => {
    show(<RoundsCard job={jobOf({ round_list: [roundOf(1, { mean_accuracy: 0.5 })] })} />);
    expect(screen.queryByRole("columnheader", { name: /Held-out/ })).toBeNull();
    expect(screen.queryByRole("link")).toBeNull();
  });

  it("are cut to the latest, and shown whole on demand", () => {
    show(<RoundsCard job={jobOf({ rounds: 12, round_list: Array.from({ length: 12 }, (_, index) => roundOf(index + 1)) })} />);
    expect(screen.getAllByRole("row")).toHaveLength(9);
    fireEvent.click(screen.getByRole("button", { name: "Show 4 earlier rounds" }));
    expect(screen.getAllByRole("row")).toHaveLength(13);
  });
});

describe("the global model", () => {
  it("is judged by held-out rows where there are any", () => {
    show(<ModelCard job={jobOf({ ...scored, best_round: 2, round_list: [scoredRound(1, { accuracy: 0.8 }), scoredRound(2, { accuracy: 0.9 }, { mean_accuracy: 0.99 })] })} />);
    expect(screen.getByText("90.0 %")).toBeTruthy();
    expect(screen.getByText("on 20 rows that no agent saw; the best so far")).toBeTruthy();
    expect(screen.getByText("99.0 %")).toBeTruthy();
  });

  it("names a better round than the last", () => {
    show(<ModelCard job={jobOf({ ...scored, best_round: 1, round_list: [scoredRound(1, { accuracy: 0.9 }), scoredRound(2, { accuracy: 0.8 })] })} />);
    expect(screen.getByText("80.0 %")).toBeTruthy();
    expect(screen.getByText("1, 90.0 %")).toBeTruthy();
  });

  it("keeps the last scored round's number while the next is being scored", () => {
    show(<ModelCard job={jobOf({ ...scored, best_round: 1, current_round: 2, round_list: [scoredRound(1, { loss: 0.5 }), roundOf(2)] })} />);
    expect(screen.getByText("loss 0.500")).toBeTruthy();
    expect(screen.getByText("on 20 rows that no agent saw, after round 1")).toBeTruthy();
  });
});

describe("the subtasks", () => {
  it("name evaluations, and what their machine does", () => {
    const evaluation = subtaskOf("evaluate", 2, "RUNNING", [attemptOf(1, "ada", "RUNNING", { epoch: null, progress: null })]);
    show(<SubtasksCard job={jobOf({ ...scored, subtasks: [subtaskOf("train", 0, "COMPLETED", [attemptOf(1, "bob", "ACCEPTED")]), evaluation] })} round={1} />);
    expect(within(row(/^Evaluation/)).getByText("Evaluating")).toBeTruthy();
    expect(within(row(/^Chunk 0/)).getByText("Verified")).toBeTruthy();
  });

  it("show attempts beside each other, each with its own progress", () => {
    const late = subtaskOf("train", 1, "RUNNING", [attemptOf(1, "ada", "RUNNING", { progress: 0.2 }), attemptOf(2, "bob", "RUNNING", { progress: 0.6 })]);
    show(<SubtasksCard job={jobOf({ subtasks: [late] })} round={1} />);
    const beside = within(screen.getByRole("list", { name: "Attempts at chunk 1 beside each other" })).getAllByRole("listitem");
    expect(beside.map((item) => item.textContent)).toEqual(["ada attempt 1", "bob attempt 2"]);
    expect(screen.getAllByRole("progressbar").map((bar) => bar.getAttribute("aria-valuenow"))).toEqual(["20", "60"]);
    expect(screen.getByText("On two machines")).toBeTruthy();
  });

  it("name who was faster with the same chunk", () => {
    const done = subtaskOf("train", 1, "COMPLETED", [attemptOf(1, "ada", "CANCELLED"), attemptOf(2, "bob", "ACCEPTED")]);
    show(<SubtasksCard job={jobOf({ subtasks: [done] })} round={1} />);
    expect(within(row(/^Chunk 1/)).getByText(/^faster than/).textContent).toBe("faster than ada");
    expect(within(row(/^Chunk 1/)).getByText(/attempt 2/)).toBeTruthy();
  });

  it("say when an open round ends, and nothing of a closed one", () => {
    const soon = new Date(Date.now() + 90_000).toISOString();
    show(<SubtasksCard job={jobOf({ round_list: [roundOf(1, { closed_at: null, deadline_at: soon })] })} round={1} />);
    expect(screen.getByText(/^0 subtasks/).textContent).toMatch(/deadline in 1 min$/);
    cleanup();
    show(<SubtasksCard job={jobOf({ round_list: [roundOf(1, { deadline_at: soon })] })} round={1} />);
    expect(screen.getByText(/^0 subtasks/).textContent).toBe("0 subtasks");
  });
});

describe("what was ordered", () => {
  it("tells of rounds, evaluation and stopping", () => {
    const job = jobOf({ ...scored, chunks: 5, chunks_per_round: 2, round_deadline_s: 90, backups: false, early_stopping: { patience: 3, min_delta: 0.01, monitor: "loss" } });
    show(<SettingsCard job={job} />);
    for (const words of ["3 rounds × 2 of 5 chunks", "1 min 30 s", "is waited for", "20 %, scored by 2 providers", "after 3 rounds without a better loss by 0.01"]) {
      expect(screen.getByText(words)).toBeTruthy();
    }
  });

  it("comes with its warnings", () => {
    show(<Warnings job={jobOf({ warnings: ["the script never mentions model.pth"] })} />);
    expect(within(screen.getByRole("list", { name: "Warnings about the order" })).getByText("The script never mentions model.pth")).toBeTruthy();
    cleanup();
    show(<Warnings job={jobOf()} />);
    expect(screen.queryByRole("list")).toBeNull();
  });
});

describe("contributions", () => {
  it("are each agent's share of the rows, the largest first", () => {
    const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
    const job = jobOf();
    const agents = [
      { agent_id: "ada", updates: 1, share: 0.25, train_s: 2 },
      { agent_id: "bob", updates: 3, share: 0.75, train_s: 6 },
    ];
    client.setQueryData(cardQuery(job.id, job.completed_subtasks, job.status).queryKey, { agents } as never);
    show(
      <QueryClientProvider client={client}>
        <ContributionsCard job={job} />
      </QueryClientProvider>,
    );
    expect(screen.getAllByRole("row").slice(1).map((one) => one.textContent)).toEqual(["bob75.0 %36 s", "ada25.0 %12 s"]);
  });
});
