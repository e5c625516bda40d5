import { describe, expect, it } from "vitest";
import { seriesByEpoch, seriesByRound } from "./chartSeries";
import type { Job, Metric } from "./queries";

const metricOf = (chunk: number, epoch: number, loss: number | null, attempt = 1): Metric => ({
  round: 1,
  chunk,
  agent_id: `agent-${chunk}`,
  attempt,
  seq: epoch - 1,
  epoch,
  loss,
  accuracy: null,
  more: {},
  at: "2026-01-01T00:00:00Z",
});

const roundOf = (round: number, loss: number | null, isClosed = true): Job["round_list"][number] => ({
  round,
  opened_at: "2026-01-01T00:00:00Z",
  closed_at: isClosed ? "2026-01-01T00:01:00Z" : null,
  updates_used: 2,
  rows_used: 10,
  convergence_delta: 0,
  step_norm: 1,
  mean_loss: loss,
  mean_accuracy: null,
  evaluation: null,
  deadline_at: null,
  global_model_sha256: null,
});

describe("seriesByEpoch", () => {
  it("has a line for each chunk and their mean", () => {
    const series = seriesByEpoch([metricOf(0, 1, 4), metricOf(0, 2, 2), metricOf(1, 1, 2)], "loss");
    expect(series.map((item) => item.id)).toEqual(["mean", "chunk:0", "chunk:1"]);
    expect(series[0]?.points).toEqual([[1, 3], [2, 2]]);
  });

  it("shows the latest attempt of a chunk alone", () => {
    const series = seriesByEpoch([metricOf(0, 1, 9), metricOf(0, 1, 1, 2)], "loss");
    expect(series).toHaveLength(1);
    expect(series[0]?.points).toEqual([[1, 1]]);
  });

  it("is empty when the measure was not reported", () => {
    expect(seriesByEpoch([metricOf(0, 1, 1)], "accuracy")).toEqual([]);
  });

  it("makes many chunks faint", () => {
    const series = seriesByEpoch(Array.from({ length: 10 }, (_, chunk) => metricOf(chunk, 1, 1)), "loss");
    expect(series.filter((item) => item.isFaint)).toHaveLength(10);
  });
});

describe("seriesByRound", () => {
  it("leaves a round that is not over out of the mean", () => {
    const series = seriesByRound([roundOf(1, 3), roundOf(2, 2), roundOf(3, 1, false)], [], "loss");
    expect(series[0]?.points).toEqual([[1, 3], [2, 2]]);
  });

  it("has a faint line for each agent", () => {
    const perRound = [1, 2].map((round) => ({ round, agent_id: "a", mean_loss: round, mean_accuracy: null }));
    expect(seriesByRound([roundOf(1, 3)], perRound, "loss").at(-1)).toMatchObject({ name: "a", isFaint: true, points: [[1, 1], [2, 2]] });
  });
});
