import { describe, expect, test } from "vitest";
import { choicesOf, filterOf, sayNetwork, type Summary } from "./words";

const summary = (idle: number, busy: number, offline: number, queued = 0): Summary => ({
  agents: { total: idle + busy + offline, online: idle + busy, idle, busy, offline },
  jobs: { total: queued, queued, running: 0, completed: 0, failed: 0 },
  cores: 8,
});

describe("the network in words", () => {
  test.each([
    [summary(0, 0, 0), "No machine has registered yet."],
    [summary(0, 0, 3, 2), "No machine is online; jobs wait until one is."],
    [summary(0, 2, 1, 1), "Every machine that is online is working. One job waits for a machine."],
    [summary(1, 0, 0), "One machine is ready to start at once."],
    [summary(2, 0, 0, 3), "2 machines are ready to start at once. 3 jobs wait for a machine."],
    [summary(1, 1, 0), "One of 2 machines online is working, one is ready to start at once."],
    [summary(2, 3, 9), "3 of 5 machines online are working, 2 are ready to start at once."],
  ])("%#", (given, said) => expect(sayNetwork(given)).toBe(said));
});

describe("filters", () => {
  test("the address says which", () => {
    expect(["idle", "BUSY", "offline", "online", "everything", "constructor", "", null].map(filterOf)).toEqual(["IDLE", "BUSY", "OFFLINE", "ONLINE", null, null, null, null]);
  });

  test("each says how many it leaves", () => {
    expect(choicesOf(summary(2, 3, 4)).map(({ number }) => number)).toEqual([9, 2, 3, 4]);
  });
});
