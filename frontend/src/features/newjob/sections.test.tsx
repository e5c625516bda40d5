import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { useState } from "react";
import { afterEach, describe, expect, it } from "vitest";
import { DealSection } from "./DealSection";
import { EMPTY, type Draft } from "./draft";
import { LearnSection } from "./LearnSection";
import { misfits } from "./options";

function Form({ start, columns = [] }: { start: Partial<Draft>; columns?: string[] }) {
  const [draft, setDraft] = useState({ ...EMPTY, ...start });
  const update = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }));
  return (
    <>
      <LearnSection draft={draft} update={update} errors={misfits(draft)} />
      <DealSection draft={draft} update={update} errors={{}} columns={columns} />
    </>
  );
}

afterEach(cleanup);

const fold = (title: string) => screen.getByText(title).closest("details") as HTMLDetailsElement;

describe("how it learns", () => {
  it("is closed and says what is chosen", () => {
    render(<Form start={{ strategy: "fedavgm", strategyOptions: { momentum: "0.5" } }} />);
    expect(fold("How it learns").open).toBe(false);
    expect(within(fold("How it learns")).getByText("FedAvgM: momentum 0.5")).toBeTruthy();
  });

  it("opens for what does not fit, and says it beside the field", () => {
    render(<Form start={{ strategy: "krum", chunks: "4" }} />);
    expect(fold("How it learns").open).toBe(true);
    const field = screen.getByLabelText("Wrong updates to withstand (f)");
    expect(field.getAttribute("aria-invalid")).toBe("true");
    expect(document.getElementById(field.getAttribute("aria-describedby")?.split(" ")[1] ?? "")?.textContent).toContain("Krum needs 5 chunks or more");
    fireEvent.change(field, { target: { value: "0" } });
    expect(field.getAttribute("aria-invalid")).toBeNull();
    expect(screen.getByText("Krum needs 3 chunks or more; the job has 4")).toBeTruthy();
  });

  it("forgets the options of another strategy", () => {
    render(<Form start={{ strategy: "fedavgm", strategyOptions: { momentum: "0.5" } }} />);
    fireEvent.click(screen.getByLabelText("DiLoCo"));
    expect((screen.getByLabelText("Momentum") as HTMLInputElement).value).toBe("");
  });

  it("says when the script does not play its part", () => {
    render(<Form start={{ strategy: "fedprox", script: "loss = f(x)" }} />);
    expect(screen.getByText(/does not call gridx_task.proximal_term/)).toBeTruthy();
  });
});

describe("how rows are dealt", () => {
  it("offers the columns of the data, and each once", () => {
    render(<Form start={{ partitioner: "stratified" }} columns={["a", "b", "a", ""]} />);
    const select = screen.getByLabelText("Column");
    expect(within(select).getAllByRole("option", { hidden: true }).map((option) => option.textContent)).toEqual(["Choose a column", "a", "b"]);
    fireEvent.change(select, { target: { value: "b" } });
    expect(screen.getByText("Stratified by b")).toBeTruthy();
  });

  it("warns where a choice may hurt", () => {
    render(<Form start={{}} />);
    expect(screen.queryByRole("status", { hidden: true })).toBeNull();
    fireEvent.click(screen.getByLabelText("In the file's order"));
    expect(screen.getByRole("status", { hidden: true }).textContent).toContain("If the file is sorted");
  });
});
