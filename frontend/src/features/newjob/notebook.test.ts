import { describe, expect, it } from "vitest";
import { joinNotebook } from "./notebook";

const notebook = (...cells: object[]) => JSON.stringify({ cells, nbformat: 4 });
const code = (source: string | string[]) => ({ cell_type: "code", source });

describe("joinNotebook", () => {
  it("joins code cells in order and leaves the words out", () => {
    const joined = joinNotebook(notebook({ cell_type: "markdown", source: "# Title" }, code("import torch"), code(["x = 1\n", "y = 2"])));
    expect(joined).toEqual({ script: "# cell 2\nimport torch\n\n# cell 3\nx = 1\ny = 2\n" });
  });

  it.each(["%matplotlib inline", "  %%bash", "!pip install torch", "?print"])("refuses %s by cell and line", (line) => {
    const joined = joinNotebook(notebook(code("import torch"), code(`x = 1\n${line}`)));
    expect(joined).toMatchObject({ problem: expect.stringContaining("cell 2, line 2") as string });
  });

  it("takes a line that begins with the operator %", () => {
    expect(joinNotebook(notebook(code('print("%d"\n  % 3)')))).toHaveProperty("script");
  });

  it.each(["", "[]", "{}", "null", '{"cells": 3}'])("says what is wrong with %j", (text) => {
    expect(joinNotebook(text)).toHaveProperty("problem");
  });

  it("says when there is no code", () => {
    expect(joinNotebook(notebook(code("  "), { cell_type: "markdown", source: "x" }))).toEqual({ problem: "this notebook has no code cells" });
  });
});
