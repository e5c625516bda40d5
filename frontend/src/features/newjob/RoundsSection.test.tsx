import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { useState } from "react";
import { afterEach, describe, expect, it } from "vitest";
import { EMPTY, problemsOf, type Draft } from "./draft";
import { RoundsSection } from "./RoundsSection";

const EVALUATES = 'def evaluate(model_path, csv_path):\n    return {}\n\nif __name__ == "__main__":\n    pass\n';

function Form({ start, jobs = [] }: { start: Partial<Draft>; jobs?: { id: number; title: string }[] }) {
  const [draft, setDraft] = useState({ ...EMPTY, ...start });
  const [client] = useState(() => {
    const made = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
    made.setQueryData(["me"], { id: 1 });
    made.setQueryData(["jobs", "starts", 1], jobs);
    return made;
  });
  return (
    <QueryClientProvider client={client}>
      <RoundsSection draft={draft} update={(change) => setDraft((before) => ({ ...before, ...change }))} errors={problemsOf(draft)} />
    </QueryClientProvider>
  );
}

afterEach(cleanup);

const fold = () => screen.getByText("Rounds and evaluation").closest("details") as HTMLDetailsElement;
const needs = () => within(screen.getByLabelText("What held-out rows need")).getByRole("listitem", { hidden: true });
const type = (label: string, value: string) => fireEvent.change(screen.getByLabelText(label), { target: { value } });

describe("held-out rows", () => {
  it("bring the choices that depend on them", () => {
    render(<Form start={{ script: EVALUATES }} />);
    expect(fold().open).toBe(false);
    expect(screen.queryByLabelText("Two providers")).toBeNull();
    type("Rows held out, %", "20");
    expect((screen.getByLabelText("Two providers") as HTMLInputElement).checked).toBe(true);
    expect(within(fold()).getByText("20 % of the rows held out")).toBeTruthy();
    fireEvent.click(screen.getByLabelText("Stop early when rounds bring nothing better"));
    type("Patience, rounds", "0");
    expect(screen.getByLabelText("Patience, rounds").getAttribute("aria-invalid")).toBe("true");
    expect(fold().open).toBe(true);
  });

  it("need evaluate() in the script", () => {
    render(<Form start={{ script: "x = 1" }} />);
    expect(needs().className).toContain("hint");
    type("Rows held out, %", "10");
    expect(needs().className).toContain("problem");
    expect(needs().textContent).toContain("evaluate(model_path, csv_path)");
    cleanup();
    render(<Form start={{ script: EVALUATES, heldOut: "10" }} />);
    expect(needs().className).toContain("good");
  });

  it("need nothing of a job without a script", () => {
    render(<Form start={{ way: "model", script: "x = 1", heldOut: "10" }} />);
    expect(screen.queryByLabelText("What held-out rows need")).toBeNull();
    expect(screen.queryByLabelText("A model file")).toBeNull();
  });

  it("cost what they cost", () => {
    render(<Form start={{ heldOut: "10", hours: "2" }} />);
    expect(screen.getByText("Each round costs 2 credits more")).toBeTruthy();
    expect(screen.getByText(/^4 credits more/)).toBeTruthy();
  });
});

describe("rounds", () => {
  it("say how many chunks train, and refuse more updates than those", () => {
    render(<Form start={{ chunks: "10" }} />);
    type("Taking part, %", "30");
    expect(screen.getByText("3 of the 10 chunks, drawn anew for each round")).toBeTruthy();
    type("Updates a round needs", "4");
    expect(screen.getByText("A whole number from 1 to 3, the chunks of a round")).toBeTruthy();
  });
});

describe("the start", () => {
  it("is one of the earlier jobs, whose round is forgotten with another", () => {
    const jobs = [{ id: 9, title: "nine" }, { id: 8, title: "eight" }];
    render(<Form start={{ start: "job", initialJob: "9", initialRound: "4" }} jobs={jobs} />);
    expect(within(fold()).getByText("from job 9, round 4")).toBeTruthy();
    type("Job", "8");
    expect((screen.getByLabelText("Its round") as HTMLInputElement).value).toBe("");
    expect(within(fold()).getByText("from job 8")).toBeTruthy();
  });

  it("may be a job that is no longer listed", () => {
    render(<Form start={{ start: "job", initialJob: "5" }} />);
    expect((screen.getByLabelText("Job") as HTMLSelectElement).value).toBe("5");
  });

  it("is a file that has to be chosen", () => {
    render(<Form start={{}} />);
    fireEvent.click(screen.getByLabelText("A model file"));
    expect(screen.getByText("Choose the .pth file to start from")).toBeTruthy();
    fireEvent.change(screen.getByLabelText("Choose a model file"), { target: { files: [new File(["1234"], "mine.pth")] } });
    expect(screen.getByText("mine.pth")).toBeTruthy();
    expect(screen.queryByText("Choose the .pth file to start from")).toBeNull();
  });
});
