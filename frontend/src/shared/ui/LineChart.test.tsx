import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { LineChart } from "./LineChart";

afterEach(cleanup);

it("marks a point in the picture, and in the table for those who do not see it", () => {
  const points = [[1, 0.5], [2, 0.75], [3, 0.625]] as const;
  render(<LineChart label="accuracy by round" xLabel="Round" series={[{ id: "a", name: "held-out", points, tone: "green", mark: { x: 2, name: "best" } }]} />);
  expect(within(screen.getByRole("img", { name: "accuracy by round" })).getByText("best 0.750")).toBeTruthy();
  expect(screen.getAllByRole("cell").map((cell) => cell.textContent)).toEqual(["0.500", "0.750 (best)", "0.625"]);
});
