import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { MemoryRouter } from "react-router";
import { attemptOf, gangOf, jobOf, rankOf, subtaskOf } from "./fixtures";
import { roundShare } from "./progress";
import type { Job } from "./queries";
import { RanksCard } from "./RanksCard";
import { RoundsBar } from "./RoundsBar";
import { SettingsCard } from "./SettingsCard";
import { rankLook } from "./states";

afterEach(cleanup);

const ddp = (more: Partial<Job> = {}) => jobOf({ mode: "ddp", chunks: 2, rounds: 1, ...more });
const show = (job: Job) =>
  render(
    <MemoryRouter>
      <RanksCard job={job} />
    </MemoryRouter>,
  );
const cells = (name: RegExp) => within(screen.getByRole("row", { name })).getAllByRole("cell").map((cell) => cell.textContent);
const headers = () => screen.getAllByRole("columnheader").map((header) => header.textContent);
const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

describe("the ranks", () => {
  it("show how far each is, and who has fallen silent", () => {
    const ranks = [
      rankOf(0, "ada", "TRAINING", { epoch: 3, step: 1240, loss: 0.25, samples_per_s: 812.34, seen_at: secondsAgo(1) }),
      rankOf(1, "bob", "TRAINING", { seen_at: secondsAgo(40) }),
    ];
    show(ddp({ gang: gangOf(ranks) }));
    expect(screen.getByRole("table", { name: "Ranks of the latest try" })).toBeTruthy();
    expect(headers()).toEqual(["Rank", "Agent", "State", "Epoch", "Step", "Loss", "Samples/s", "Last heard"]);
    expect(cells(/^Rank 0/)).toEqual(["Rank 0", "ada", "Training", "3", "1,240", "0.250", "812.3", "just now"]);
    expect(cells(/^Rank 1/).slice(3)).toEqual(["–", "–", "–", "–", expect.stringMatching(/^silent, \d\d s ago$/)]);
  });

  it("were heard of only while one is at work", () => {
    show(ddp({ gang: gangOf([rankOf(0, "ada", "VERIFYING"), rankOf(1, "bob", "UPLOADING", { seen_at: secondsAgo(1) })]) }));
    expect(cells(/^Rank 0/).at(-1)).toBe("–");
    expect(cells(/^Rank 1/).at(-1)).toBe("just now");
    cleanup();
    show(ddp({ gang: gangOf([rankOf(0, "ada", "VERIFYING"), rankOf(1, "bob", "VERIFYING")]) }));
    expect(headers()).not.toContain("Last heard");
  });

  it.each([
    [1, "RESERVED", "Reserved"],
    [1, "DOWNLOADING", "Fetching rows"],
    [1, "INSTALLING", "Installing packages"],
    [1, "READY", "Ready"],
    [1, "TRAINING", "Training"],
    [0, "UPLOADING", "Sending its model"],
    [0, "VERIFYING", "Being verified"],
    [1, "VERIFYING", "Ended well"],
    [1, "ACCEPTED", "Verified"],
    [1, "FAILED", "Failed"],
    [1, "LOST", "Lost"],
    [1, "CANCELLED", "Cancelled"],
    [1, "SOMETHING_NEW", "SOMETHING_NEW"],
  ])("say of rank %i in state %s: %s", (rank, state, words) => {
    expect(rankLook({ rank, state })[0]).toBe(words);
  });

  it("tell of the try, and why the one before it was stopped", () => {
    const events = [
      { id: 1, at: "2026-01-01T00:00:00Z", what: "round", subtask_id: null, old: null, new: "BROKEN", text: "gang 1 was stopped: rank 1 (bob) was lost" },
      { id: 2, at: "2026-01-01T00:00:00Z", what: "round", subtask_id: null, old: null, new: "TRAINING", text: "gang 2: all 2 ranks are there and start" },
    ];
    show(ddp({ events, gang: gangOf([rankOf(0, "ada", "TRAINING")], { number: 2, resumed_from: 3, checkpoints: 1 }) }));
    expect(screen.getByText("try 2, resumed from a checkpoint, 1 checkpoint sealed")).toBeTruthy();
    expect(screen.getByText("Try 1 was stopped: rank 1 (bob) was lost")).toBeTruthy();
  });

  it("say once why a try was stopped, and beside a rank what else it came to", () => {
    const subtasks = [
      subtaskOf("rank", 0, "PENDING", [attemptOf(1, "ada", "FAILED", { reason: "connection closed by peer" })]),
      subtaskOf("rank", 1, "PENDING", [attemptOf(1, "bob", "FAILED", { reason: "exit code 1\nin train.py\nValueError: x" })]),
    ];
    const gang = gangOf([rankOf(0, "ada", "FAILED"), rankOf(1, "bob", "FAILED")], { status: "BROKEN", reason: "rank 1 (bob): exit code 1\nin train.py\nValueError: x" });
    show(ddp({ subtasks, gang }));
    expect(screen.getByText("Try 1 was stopped: rank 1 (bob): exit code 1 … ValueError: x")).toBeTruthy();
    expect(cells(/^Rank 0/)[2]).toBe("Failedconnection closed by peer");
    expect(cells(/^Rank 1/)[2]).toBe("Failed");
  });

  it("have words for when there are none", () => {
    show(ddp());
    expect(screen.getByText(/^No try has begun yet/)).toBeTruthy();
    expect(screen.queryByRole("table")).toBeNull();
    cleanup();
    show(ddp({ status: "PROCESSING" }));
    expect(screen.getByText("The rows are still being dealt to ranks.")).toBeTruthy();
    cleanup();
    show(ddp({ status: "CANCELLED" }));
    expect(screen.getByText("It never came to a try.")).toBeTruthy();
  });
});

describe("a training in step", () => {
  it("has one bar for all ranks", () => {
    const subtasks = [subtaskOf("rank", 0, "RUNNING", [attemptOf(1, "ada", "RUNNING", { progress: 0.5 })]), subtaskOf("rank", 1, "VERIFYING", [attemptOf(1, "bob", "VERIFYING")])];
    const job = ddp({ subtasks });
    expect(roundShare(job)).toBe(0.75);
    render(<RoundsBar job={job} />);
    expect(screen.getByRole("img", { name: "75.0 % of the training done" })).toBeTruthy();
  });

  it("says its mode, and nothing of rounds", () => {
    render(<SettingsCard job={ddp()} />);
    expect(screen.getByText("in step: one model, all ranks together")).toBeTruthy();
    expect(screen.getByText("2 ranks")).toBeTruthy();
    for (const words of ["Learns by", "Held-out rows", "A late chunk"]) expect(screen.queryByText(words)).toBeNull();
  });
});
