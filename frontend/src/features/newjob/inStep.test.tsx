import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Body } from "@/shared/api/types";
import { draftOf, EMPTY, planOf, problemsOf, requestOf, type Dataset, type Draft } from "./draft";
import { JobForm } from "./JobForm";
import { misfits } from "./options";
import { priceInWords, priceOf } from "./price";
import { isInStep, modelFileOf } from "./rounds";

const dataset: Dataset = { id: 7, name: "rows.csv", rows: 100, columns: ["a"], delimiter: ",", bytes: 10, sha256: "", warnings: [], created_at: "" };
const full: Draft = { ...EMPTY, title: "t", script: "dist.init_process_group()", dataset, mode: "ddp", chunks: "4" };
/** Typed before "In step" was chosen. */
const typed: Partial<Draft> = { rounds: "x", heldOut: "99", fraction: "0", deadline: "x", minUpdates: "9", start: "job", strategy: "krum", stopsEarly: true, keepUpdates: true };

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

describe("what is sent of a job in step", () => {
  it("is nothing that the server refuses in mode ddp", () => {
    const request = requestOf({ ...full, ...typed });
    expect(request).toMatchObject({ mode: "ddp", chunks: 4, dataset_id: 7, time_limit_s: 3600, partitioner: "iid" });
    for (const name of ["rounds", "strategy", "fraction", "min_updates", "round_deadline_s", "held_out", "early_stopping", "model_type", "initial_job_id", "strategy_options", "keep_updates"]) {
      expect(request).not.toHaveProperty(name);
    }
  });

  it("is no mode ddp for a ready-made model", () => {
    expect(isInStep({ ...full, way: "model" })).toBe(false);
    expect(requestOf({ ...full, way: "model", offered: "mnist" })).toMatchObject({ mode: "federated", rounds: 3 });
  });

  it("is no model file", () => {
    const file: Draft = { ...full, start: "file", initialModel: new File(["x"], "model.pth") };
    expect(modelFileOf(file)).toBeNull();
    expect(modelFileOf({ ...file, mode: "federated" })).not.toBeNull();
  });
});

describe("what is wrong with a job in step", () => {
  it("is nothing of what it does not have", () => {
    expect(problemsOf({ ...full, ...typed })).toEqual({});
    expect(misfits({ ...full, ...typed })).toEqual({});
    expect(problemsOf({ ...full, ...typed, mode: "federated" })).toHaveProperty("rounds");
  });

  it("is more ranks than rows", () => {
    expect(problemsOf({ ...full, chunks: "101" }).chunks).toBe("The dataset has 100 rows; ranks cannot be more");
  });
});

it("costs as many units as it has ranks", () => {
  const plan = planOf({ ...full, ...typed, hours: "1.5" });
  expect(priceOf(plan)).toBe(8);
  expect(priceInWords(plan)).toBe("4 ranks × 2 credits (up to 2 hours each)");
  expect(priceOf(planOf({ ...full, chunks: "" }))).toBeNaN();
});

it("is repeated in step", () => {
  const job = { id: 3, title: "t", mode: "ddp", recipe: null, arguments: [], hyperparameters: {}, chunks: 4, chunks_per_round: 4, rounds: 1, min_updates: 4, time_limit_s: 3600, needs: {}, early_stopping: null, round_deadline_s: null, held_out_share: 0, evaluations: 0, backups: true, strategy: "fedavg", strategy_options: {}, partitioner: "iid", partitioner_options: {} };
  const draft = draftOf(job as unknown as Body<"JobView">, "script", "", dataset);
  expect(isInStep(draft)).toBe(true);
  expect(requestOf(draft)).toEqual({ ...requestOf(full), script: "script" });
});

function show(start: Draft, answer: () => Response = () => Response.json({})) {
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method !== "POST") return Response.json({ detail: "not asked for here" }, { status: 404 });
    sent.push(await request.json());
    return answer();
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(["me"], { id: 1 });
  render(
    <QueryClientProvider client={client}>
      <MemoryRouter>
        <JobForm initial={start} />
      </MemoryRouter>
    </QueryClientProvider>,
  );
  return sent;
}

const findings = () => within(screen.getByRole("list", { name: "What the script does" }));
const describedBy = (field: HTMLElement) => (field.getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent);

describe("the form", () => {
  it("offers the choice for a script, and what belongs to it", () => {
    show({ ...EMPTY });
    const choice = within(screen.getByRole("group", { name: "How it trains" }));
    expect((choice.getByLabelText("In rounds") as HTMLInputElement).checked).toBe(true);
    expect(screen.getByLabelText("Rounds")).toBeTruthy();
    fireEvent.click(choice.getByLabelText("In step"));
    for (const label of ["Rounds", "Chunks", "Rows held out, %", "Keep every round's updates"]) expect(screen.queryByLabelText(label)).toBeNull();
    expect(screen.queryByText("How it learns")).toBeNull();
    expect(screen.getByText("5 ranks × 1 credit")).toBeTruthy();
    expect(describedBy(screen.getByLabelText("Ranks"))).toEqual(["Each rank gets its own chunk. As many slots must be free at the same time, of agents that reach one another"]);
    fireEvent.click(screen.getByLabelText("A ready-made model"));
    expect(screen.queryByRole("group", { name: "How it trains" })).toBeNull();
    expect(screen.getByLabelText("Rounds")).toBeTruthy();
  });

  it("keeps what was typed for a change of mind", () => {
    show({ ...EMPTY, rounds: "7", heldOut: "20" });
    fireEvent.click(screen.getByLabelText("In step"));
    fireEvent.click(screen.getByLabelText("In rounds"));
    expect((screen.getByLabelText("Rounds") as HTMLInputElement).value).toBe("7");
    expect((screen.getByLabelText("Rows held out, %") as HTMLInputElement).value).toBe("20");
  });

  it("shows a refusal beside its field, and one about no field of it by the price", async () => {
    const detail = "chunks: at most 64 ranks; mode: it is not offered here; rounds: has no meaning in mode ddp";
    const sent = show(full, () => Response.json({ code: "invalid", detail }, { status: 422 }));
    fireEvent.click(screen.getByRole("button", { name: "Submit job" }));
    await waitFor(() => expect(screen.getByText("It is not offered here")).toBeTruthy());
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatchObject({ mode: "ddp", chunks: 4 });
    const ranks = screen.getByLabelText("Ranks");
    expect(ranks.getAttribute("aria-invalid")).toBe("true");
    expect(describedBy(ranks)).toContain("At most 64 ranks");
    expect(screen.getByText("Rounds: has no meaning in mode ddp").getAttribute("role")).toBe("alert");
  });

  it("says what the script lacks in step", () => {
    show({ ...full, script: 'torch.save(model.state_dict(), "model.pth")' });
    expect(findings().getByText(/never calls dist\.init_process_group/)).toBeTruthy();
    fireEvent.click(screen.getByLabelText("In rounds"));
    expect(findings().queryByText(/init_process_group/)).toBeNull();
    expect(findings().getByText(/never loads the global model/)).toBeTruthy();
  });
});
