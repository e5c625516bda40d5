import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkScript } from "./scriptCheck";

const tones = (script: string, rounds = 3) => checkScript(script, rounds).map((finding) => finding.tone);
const words = (script: string, rounds = 3) =>
  checkScript(script, rounds)
    .map((finding) => finding.text)
    .join("\n");

describe("checkScript", () => {
  it("finds nothing wrong with the example", () => {
    expect(tones(readFileSync("../examples/breast_cancer/train.py", "utf8"))).toEqual(["good", "good", "good"]);
  });

  it("misses model.pth, also when only a comment names it", () => {
    expect(words("# model.pth\nprint(1)")).toContain("never mentions model.pth");
  });

  it("refuses a whole model", () => {
    expect(words('torch.save(model, "model.pth")')).toContain("whole model");
  });

  it("takes several rounds without the global model as a problem, one round as a hint", () => {
    const script = 'torch.save(model.state_dict(), "model.pth")';
    expect(checkScript(script, 3)[1]?.tone).toBe("problem");
    expect(checkScript(script, 1)[1]?.tone).toBe("hint");
  });

  it.each([
    ["x = scaler.fit_transform(x)", "scaler"],
    ["classes = y.nunique()", "count classes"],
    ['pd.read_csv("iris.csv")', "another file"],
    ['model.to("cuda")', "GPU"],
    ["import requests", "network"],
    ['name = input("who")', "input"],
  ])("warns of %s", (script, about) => {
    expect(words(script)).toContain(about);
  });
});
