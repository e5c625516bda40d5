import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { useState } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Body } from "@/shared/api/types";
import { DealSection } from "./DealSection";
import { EMPTY, draftOf, problemsOf, requestOf, type Dataset, type Draft } from "./draft";
import { ModelSection } from "./ModelSection";
import { OfferedData } from "./OfferedData";

const dataset: Dataset = { id: 7, name: "rows.csv", rows: 100, columns: ["a", "kind"], delimiter: ",", bytes: 10, sha256: "", warnings: [], created_at: "" };
const model: Draft = { ...EMPTY, title: "t", way: "model", dataset, target: "kind" };

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

describe("what is sent of a no-code job", () => {
  it("is a model, data and what differs from the defaults, and no script", () => {
    const request = requestOf({ ...model, script: "left over", args: "--x", modelOptions: { epochs: "5", learning_rate: "0.001", hidden_layers: "64 32", activation: "tanh" } });
    expect(request).toMatchObject({ model_type: "mlp", dataset_id: 7, dataset_name: null, target_column: "kind", hyperparameters: { epochs: 5, hidden_layers: [64, 32], activation: "tanh" } });
    expect(request.hyperparameters).not.toHaveProperty("learning_rate");
    expect(request).not.toHaveProperty("script");
    expect(request).not.toHaveProperty("arguments");
  });

  it("names the server's own data, and leaves layers to models that have them", () => {
    expect(requestOf({ ...model, offered: "mnist", model: "logistic_regression", modelOptions: { hidden_layers: "5" } })).toMatchObject({
      model_type: "logistic_regression",
      dataset_id: null,
      dataset_name: "mnist",
      target_column: null,
      hyperparameters: {},
    });
  });

  it("is the same again for a job that is repeated", () => {
    const hyperparameters = { learning_rate: 0.01, epochs: 10, batch_size: 32, hidden_layers: [128, 64], activation: "relu" };
    const job = { id: 3, title: "t", recipe: "mlp", arguments: ["--model=mlp", "--target=kind"], hyperparameters, chunks: 5, rounds: 1, min_updates: 5, time_limit_s: 3600, needs: {}, strategy: "fedavg", strategy_options: {}, partitioner: "iid", partitioner_options: {} };
    const draft = draftOf(job as unknown as Body<"JobView">, "the server's script", "", dataset);
    expect(draft).toMatchObject({ way: "model", model: "mlp", target: "kind", modelOptions: { learning_rate: "0.01" }, script: "", args: "", hyperparameters: "" });
    expect(requestOf(draft).hyperparameters).toEqual({ learning_rate: 0.01 });
  });
});

describe("what is wrong with a no-code job", () => {
  it("is named beside each field", () => {
    expect(problemsOf(model)).toEqual({});
    const wrong = problemsOf({ ...model, target: "", modelOptions: { epochs: "0", learning_rate: "fast", hidden_layers: "12, many" } });
    expect(Object.keys(wrong).toSorted()).toEqual(["hyperparameters.epochs", "hyperparameters.hidden_layers", "hyperparameters.learning_rate", "target"]);
    expect(wrong["hyperparameters.epochs"]).toBe("A whole number from 1 to 1,000");
    expect(problemsOf({ ...model, dataset: null })).toHaveProperty("dataset");
    expect(problemsOf({ ...model, dataset: null, offered: "synthetic", target: "" })).toEqual({});
  });
});

function Form({ start }: { start: Partial<Draft> }) {
  const [draft, setDraft] = useState({ ...model, ...start });
  const update = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }));
  return (
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <OfferedData draft={draft} update={update} />
      <ModelSection draft={draft} update={update} errors={problemsOf(draft)} />
      <DealSection draft={draft} update={update} errors={{}} columns={draft.dataset?.columns ?? []} />
    </QueryClientProvider>
  );
}

describe("the model's fields", () => {
  it("explain each choice, and show layers where there are any", () => {
    render(<Form start={{ dataset: null }} />);
    const choice = screen.getByLabelText("Neural network (MLP)");
    expect(document.getElementById(choice.getAttribute("aria-describedby") ?? "")?.textContent).toContain("For most tables");
    expect((screen.getByLabelText("Hidden layers") as HTMLInputElement).value).toBe("128, 64");
    fireEvent.click(screen.getByLabelText("Linear regression"));
    expect(screen.queryByLabelText("Hidden layers")).toBeNull();
    expect((screen.getByLabelText("Epochs") as HTMLInputElement).placeholder).toBe("10");
    fireEvent.change(screen.getByLabelText("Epochs"), { target: { value: "0.5" } });
    expect(screen.getByLabelText("Epochs").getAttribute("aria-invalid")).toBe("true");
  });

  it("offer the server's own data", () => {
    render(<Form start={{ dataset: null }} />);
    fireEvent.click(screen.getByLabelText("MNIST"));
    expect((screen.getByLabelText("MNIST") as HTMLInputElement).checked).toBe(true);
  });
});

describe("the preview of a deal", () => {
  const deal = { labels: ["a", "b"], chunks: [{ chunk: 0, rows: 50, labels: [50, 0] }, { chunk: 1, rows: 50, labels: [0, 50] }], warnings: ["the file is sorted by 'kind'"], proposed: "stratified" };

  it("shows the rows of each chunk, warns in words and takes the proposal", async () => {
    const asked: URL[] = [];
    vi.stubGlobal("fetch", (request: Request) => {
      asked.push(new URL(request.url));
      return Promise.resolve(Response.json({ columns: [], rows: [], deal }));
    });
    render(<Form start={{ partitioner: "contiguous", chunks: "2" }} />);
    await waitFor(() => expect(screen.getByText("The file is sorted by 'kind'")).toBeTruthy());
    expect(Object.fromEntries(asked[0]?.searchParams ?? [])).toMatchObject({ chunks: "2", partitioner: "contiguous", column: "kind" });
    expect(screen.getByRole("img", { hidden: true }).getAttribute("aria-label")).toContain("Rows of 2 chunks by kind");
    fireEvent.click(screen.getByRole("button", { name: "Deal stratified by kind", hidden: true }));
    await waitFor(() => expect(asked.at(-1)?.searchParams.get("partitioner")).toBe("stratified"));
    expect((screen.getByLabelText("Stratified") as HTMLInputElement).checked).toBe(true);
  });
});
