import { describe, expect, it } from "vitest";
import { seriesByEpoch, seriesByRound, seriesOfPair } from "./chartSeries";
import { attemptOf, jobOf, roundOf as closedRound, scoredRound, subtaskOf } from "./fixtures";
import type { Metric } from "./queries";

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

const roundOf = (round: number, mean_loss: number | null, isClosed = true) => closedRound(round, { mean_loss, ...(!isClosed && { closed_at: null }) });

const pointsOf = (ofRank: Metric[]) => seriesByEpoch(ofRank, "loss", [], "rank")[0]?.points;

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

  it("keeps the first machine's line when a second begins beside it, until that one is accepted", () => {
    const metrics = [metricOf(0, 1, 9), metricOf(0, 2, 8), metricOf(0, 1, 1, 2)];
    const beside = subtaskOf("train", 0, "RUNNING", [attemptOf(1, "ada", "RUNNING"), attemptOf(2, "bob", "RUNNING")]);
    expect(seriesByEpoch(metrics, "loss", [beside])[0]?.points).toEqual([[1, 9], [2, 8]]);
    const done = subtaskOf("train", 0, "COMPLETED", [attemptOf(1, "ada", "CANCELLED"), attemptOf(2, "bob", "ACCEPTED")]);
    expect(seriesByEpoch(metrics, "loss", [done])[0]?.points).toEqual([[1, 1]]);
  });

  it("names the lines of a training in step after its ranks", () => {
    const names = seriesByEpoch([metricOf(0, 1, 4), metricOf(1, 1, 2)], "loss", [], "rank").map(({ name }) => name);
    expect(names).toEqual(["mean of the ranks", "rank 0, agent-0", "rank 1, agent-1"]);
  });

  it("lets a try of ranks go on with the line of the one before, from where its checkpoint was", () => {
    const first = [1, 2, 3].map((epoch) => metricOf(0, epoch, 10 - epoch));
    expect(pointsOf([...first, metricOf(0, 3, 1, 2), metricOf(0, 4, 0.5, 2)])).toEqual([[1, 9], [2, 8], [3, 1], [4, 0.5]]);
    expect(pointsOf([...first, metricOf(0, 1, 1, 2)])).toEqual([[1, 1]]);
    expect(pointsOf([...first, metricOf(0, 3, 1, 2), metricOf(0, 2, 0.5, 3)])).toEqual([[1, 9], [2, 0.5]]);
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

  it("keeps held-out rows, training and agents apart, and marks the best round", () => {
    const rounds = [scoredRound(1, { loss: 0.5, f1: 1 }, { mean_loss: 0.4 }), scoredRound(2, { loss: 0.7 }, { mean_loss: 0.3 }), closedRound(3, { mean_loss: 0.2 })];
    const perRound = [{ round: 1, agent_id: "a", mean_loss: 0.45, mean_accuracy: null }];
    const series = seriesByRound(rounds, perRound, "loss", 1);
    expect(series.map(({ id, tone, isFaint }) => [id, tone, isFaint])).toEqual([["heldout", "green", undefined], ["mean", "blue", undefined], ["agent:a", undefined, true]]);
    expect(series[0]).toMatchObject({ points: [[1, 0.5], [2, 0.7]], mark: { x: 1, name: "best" } });
    expect(series[1]?.points).toEqual([[1, 0.4], [2, 0.3], [3, 0.2]]);
    expect(seriesByRound(rounds, [], "accuracy", 1)).toEqual([]);
  });
});

describe("seriesOfPair", () => {
  const scored = jobOf({ id: 1, evaluations: 2, best_round: 1, round_list: [scoredRound(1, { loss: 0.5 }, { mean_loss: 0.4 })] });
  const plain = jobOf({ id: 2, strategy: "fedavgm", round_list: [closedRound(1, { mean_loss: 0.6 })] });

  it("draws held-out rows solid and training dashed, by job and strategy", () => {
    expect(seriesOfPair([scored, plain], "loss").map(({ name, tone, isDashed, mark }) => [name, tone, isDashed ?? false, mark?.x])).toEqual([
      ["job 1, FedAvg, held-out rows", "green", false, 1],
      ["job 1, FedAvg, training", "green", true, undefined],
      ["job 2, FedAvgM, training", "violet", true, undefined],
    ]);
  });

  it("draws training solid where neither job has held-out rows", () => {
    expect(seriesOfPair([plain, plain], "loss").every(({ isDashed }) => !isDashed)).toBe(true);
  });
});
