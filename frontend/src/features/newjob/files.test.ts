import { describe, expect, it } from "vitest";
import { sortFile } from "./files";

describe("a file that is dropped", () => {
  it.each([
    ["train.py", "script"],
    ["requirements.txt", "requirements"],
    ["rows.CSV", "data"],
    ["model.pth", "model"],
    ["weights.pt", "model"],
    ["photo.png", "refused"],
  ])("%s is %s", async (name, kind) => {
    expect(await sortFile(new File(["x"], name))).toMatchObject({ kind });
  });

  it.each(["rows.csv", "model.pth"])("is refused when it is empty: %s", async (name) => {
    expect(await sortFile(new File([], name))).toEqual({ kind: "refused", name, problem: "this file is empty" });
  });
});
