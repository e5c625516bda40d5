import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkEvaluate, checkScript } from "./scriptCheck";

const tones = (script: string, rounds = 3) => checkScript(script, rounds).map((finding) => finding.tone);
const words = (script: string, rounds = 3) =>
  checkScript(script, rounds)
    .map((finding) => finding.text)
    .join("\n");

describe("checkScript", () => {
  it("finds nothing wrong with the example", () => {
    expect(tones(readFileSync("../examples/breast_cancer/train.py", "utf8"))).toEqual(["good", "good", "good"]);
  });

  it("finds nothing wrong with the example in step", () => {
    const findings = checkScript(readFileSync("../examples/ddp_breast_cancer/train.py", "utf8"), "in step");
    expect(findings.map(({ tone }) => tone)).toEqual(["good", "good", "good", "good"]);
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

describe("checkEvaluate", () => {
  const main = '\nif __name__ == "__main__":\n    train()\n';
  const tone = (script: string, isAskedFor = true) => checkEvaluate(script + main, isAskedFor).tone;

  it.each([
    "def evaluate(model_path, csv_path): ...",
    "def evaluate(model_path: str, csv_path: str) -> dict[str, float]:",
    "def evaluate(\n    model_path: Annotated[str, f(1, 2)],\n    csv_path='data.csv',\n    rows=None,\n):",
    "def evaluate(*paths):",
    "def evaluate(a, /, b, *, more=1):",
  ])("takes %j", (script) => {
    expect(tone(script)).toBe("good");
  });

  it.each(["def evaluate(path):", "def evaluate(a, b, c):", "def evaluate(a, *, b):", "def evaluate():", "class A:\n    def evaluate(self, a, b):", "# def evaluate(a, b):", "def evaluate_all(a, b):"])(
    "does not take %j",
    (script) => {
      expect(tone(script)).toBe("problem");
      expect(tone(script, false)).toBe("hint");
    },
  );

  it("asks for the guard that importing needs", () => {
    const finding = checkEvaluate("def evaluate(a, b): ...\ntrain()", true);
    expect(finding.tone).toBe("problem");
    expect(finding.text).toContain('if __name__ == "__main__":');
  });
});
