import { describe, expect, test } from "vitest";
import type { Machine } from "@/shared/machines/hardware";
import { addCommand, arrivals, isLoopback } from "./arrivals";
import { earningsOf } from "./earnings";
import { outcomeOf, phaseWords, pieceWords, tally, verdictOf } from "./outcomes";
import type { Movement, Task } from "./queries";

const machine = (id: string, status: Machine["status"]): Machine => ({
  id,
  status,
  hardware: {},
  isolation: "docker",
  registered_at: "2030-01-01T00:00:00Z",
  last_seen_at: "2030-01-01T00:00:00Z",
  tasks_completed: 0,
  current_task: null,
  hostname: "h",
  accepts: "all",
  paused: null,
  quarantined_until: null,
  quarantine_reason: null,
  doctor: null,
});

describe("machines that appear", () => {
  test("a new one, and one that came back", () => {
    const before = [machine("old", "OFFLINE"), machine("idle", "IDLE"), machine("gone", "OFFLINE")];
    const now = [machine("old", "IDLE"), machine("idle", "BUSY"), machine("gone", "OFFLINE"), machine("new", "IDLE")];
    expect(arrivals(before, now).map(({ id }) => id)).toEqual(["old", "new"]);
  });

  test("nobody", () => {
    expect(arrivals([machine("a", "IDLE")], [machine("a", "IDLE")])).toEqual([]);
    expect(arrivals([], [])).toEqual([]);
  });
});

describe("the command", () => {
  test("downloads, installs and runs", () => {
    expect(addCommand("https://grid.example", "gxk_a-b_c")).toBe(
      "curl -fsSL https://grid.example/install.sh -o gridx-install.sh && sh gridx-install.sh && " +
        "GRIDX_KEY=gxk_a-b_c ~/.gridx-worker/venv/bin/gridx-worker run --server https://grid.example",
    );
  });

  test("quotes what a shell would read otherwise", () => {
    expect(addCommand("http://[::1]:8000", "k")).toContain("--server 'http://[::1]:8000'");
    expect(addCommand("http://a", "it's")).toContain(String.raw`GRIDX_KEY='it'\''s'`);
  });

  test("the process sandbox is asked for by name", () => {
    expect(addCommand("http://a", "k", true)).toMatch(/--sandbox process --python "\$\(command -v python3\)"$/);
  });

  test("this computer's own addresses", () => {
    expect(["http://localhost:8000", "http://127.0.0.1", "http://[::1]:1"].every(isLoopback)).toBe(true);
    expect(["http://10.0.0.7:8000", "https://grid.example", "http://localhost.example"].some(isLoopback)).toBe(false);
  });
});

const movement = (created_at: string, amount: number, reference: string): Movement => ({ id: 1, amount, other: "escrow:1", reference, reason: "", created_at });

describe("earnings", () => {
  const now = new Date("2030-01-10T12:00:00Z");

  test("only what machines earned counts", () => {
    const found = earningsOf(
      [
        movement("2030-01-10T11:58:00Z", 2, "subtask:2"),
        movement("2030-01-10T11:55:00Z", 1, "attempt:1"),
        movement("2030-01-10T11:50:00Z", -5, "hold:1"),
        movement("2030-01-10T11:40:00Z", 4, "release:1"),
        movement("2030-01-10T11:30:00Z", 100, "welcome:1"),
      ],
      now,
    );
    expect(found).toMatchObject({ total: 3, lastDay: 3, unit: "minute" });
    expect(found.points.map(([, sum]) => sum)).toEqual([0, 1, 1, 1, 3, 3, 3]);
    const steps = found.points.map(([step]) => step);
    expect(steps.every((step, index) => index === 0 || step === (steps[index - 1] ?? 0) + 1)).toBe(true);
  });

  test("steps grow with the time", () => {
    expect(earningsOf([movement("2030-01-09T12:00:00Z", 1, "subtask:1")], now)).toMatchObject({ unit: "hour", lastDay: 0 });
    const days = earningsOf([movement("2029-12-01T12:00:00Z", 1, "subtask:1")], now);
    expect(days.unit).toBe("day");
    expect(days.points).toHaveLength(42);
    expect(days.nameOf(days.points.at(-1)?.[0] ?? 0)).toBe("10 Jan");
  });

  test("nothing yet", () => {
    expect(earningsOf([], now)).toMatchObject({ total: 0, points: [] });
  });

  test("times without a zone are UTC", () => {
    expect(earningsOf([movement("2030-01-10T11:59:30", 1, "subtask:1")], now).points).toHaveLength(3);
  });
});

const task = (status: string, more: Partial<Task> = {}): Task => ({
  task_id: 1,
  job_id: 1,
  round: 2,
  chunk: 0,
  attempt: 1,
  agent_id: "a",
  status,
  phase: null,
  epoch: null,
  paid: 0,
  reason: null,
  started_at: "2030-01-01T00:00:00Z",
  finished_at: null,
  ...more,
});

describe("outcomes", () => {
  test("a running one says its phase", () => {
    expect(outcomeOf(task("RUNNING", { phase: "TRAINING", epoch: 4 }))).toMatchObject({ word: "Training, epoch 4", mark: "pulse" });
    expect(phaseWords({ phase: "DOWNLOADING", epoch: 3 })).toBe("Downloading");
    expect(phaseWords({ phase: null, epoch: null })).toBe("Starting");
  });

  test("an unknown status is said as it is", () => {
    expect(outcomeOf(task("PAUSED")).word).toBe("Paused");
  });

  test("which piece", () => {
    expect(pieceWords(task("LOST"))).toBe("Round 2, chunk 0");
    expect(pieceWords(task("LOST", { attempt: 3 }))).toBe("Round 2, chunk 0, attempt 3");
  });

  test("cancelled and running attempts are nobody's fault", () => {
    expect(tally(["ACCEPTED", "ACCEPTED", "REFUSED", "FAILED", "LOST", "CANCELLED", "RUNNING", "VERIFYING"].map((status) => task(status)))).toEqual({ accepted: 2, failed: 3 });
  });
});

describe("a machine's health", () => {
  const at = "2030-01-01T00:00:00Z";
  const now = Date.parse("2030-01-01T12:00:00Z");
  const sound = { name: "Docker answers", problem: null, fix: null };
  const full = { name: "disk: 0 GB free", problem: "full", fix: "make room" };

  test("nobody looked", () => {
    expect(verdictOf(machine("a", "IDLE"), now).word).toBe("Not examined");
  });

  test("sound, and with a fault", () => {
    expect(verdictOf({ ...machine("a", "IDLE"), doctor: { at, score: 1, checks: [sound] } }, now)).toMatchObject({ word: "All is well", tone: "green" });
    expect(verdictOf({ ...machine("a", "IDLE"), doctor: { at, score: null, checks: [sound, full] } }, now)).toMatchObject({ word: "1 of 2 checks failed", tone: "red" });
  });

  test("quarantine counts more, until it is over", () => {
    const held = { ...machine("a", "IDLE"), doctor: { at, score: 1, checks: [sound] }, quarantined_until: "2030-01-01T18:00:00Z", quarantine_reason: "its last updates were refused" };
    expect(verdictOf(held, now)).toMatchObject({ word: "In quarantine", why: "its last updates were refused" });
    expect(verdictOf(held, now + 7 * 3600_000).word).toBe("All is well");
  });
});
