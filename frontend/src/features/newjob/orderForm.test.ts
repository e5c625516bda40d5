import { describe, expect, it } from "vitest";
import { EMPTY, requestOf, type Dataset } from "./draft";
import { formOf } from "./orderForm";

const dataset: Dataset = { id: 7, name: "rows.csv", rows: 100, columns: ["a"], delimiter: ",", bytes: 10, sha256: "", warnings: [], created_at: "" };

describe("the form of an order with a model file", () => {
  it("has files for script, requirements and model, text for the rest, and nothing that is not set", async () => {
    const request = requestOf({ ...EMPTY, title: "t", script: "import torch", requirements: "numpy\n", dataset, args: "--epochs 'a b'", heldOut: "20", hyperparameters: '{"a": 1}' });
    const form = formOf(request, new File(["weights"], "mine.pth"));
    expect(form.get("title")).toBe("t");
    expect(form.get("dataset_id")).toBe("7");
    expect(form.get("held_out")).toBe("0.2");
    expect(form.get("backups")).toBe("true");
    expect(form.get("arguments")).toBe("--epochs 'a b'");
    expect(JSON.parse(String(form.get("hyperparameters")))).toEqual({ a: 1 });
    expect(form.has("seed")).toBe(false);
    expect(form.has("initial_job_id")).toBe(false);
    expect(form.has("script")).toBe(false);
    const [script, requirements, model] = ["file_code", "file_req", "file_model"].map((name) => form.get(name) as File);
    expect(await script?.text()).toBe("import torch");
    expect(await requirements?.text()).toBe("numpy\n");
    expect([model?.name, await model?.text()]).toEqual(["mine.pth", "weights"]);
  });
});
