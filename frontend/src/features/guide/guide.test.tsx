import { render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { describe, expect, test } from "vitest";
import { Markdown } from "./Markdown";
import { PARTS } from "./parts";
import { hrefOf, read, slug } from "./read";

const show = (markdown: string) => render(<MemoryRouter><Markdown tokens={read(markdown).tokens} /></MemoryRouter>).container;

describe("reading a document", () => {
  test("title, sections, the rest", () => {
    const page = read("# The `title`\n\nHello.\n\n## First part\n\nText\n\n## What's next?\n\n### Deeper\n");
    expect(page.title).toBe("The title");
    expect(page.sections).toEqual([
      { id: "first-part", title: "First part" },
      { id: "what-s-next", title: "What's next?" },
    ]);
  });

  test("slugs", () => expect(slug("  What lies in `train.py`? ")).toBe("what-lies-in-train-py"));

  test("links lead to the web, the page or the guide; nowhere else", () => {
    expect(hrefOf("https://example.org/x")).toBe("https://example.org/x");
    expect(hrefOf("#part")).toBe("#part");
    expect(hrefOf("docs/providers.md")).toBe("/app/guide/providers");
    expect(hrefOf("training-contract.md#limits")).toBe("/app/guide/contract");
    expect(["javascript:alert(1)", "data:text/html,x", "//evil.example", "../README.md", ""].map(hrefOf)).toEqual([null, null, null, null, null]);
  });
});

describe("drawing it", () => {
  test("HTML stays text or is left out, entities are characters", () => {
    const box = show('Hello <img src=x onerror="alert(1)"> <b>you</b> & `a < b` &lt;tag&gt;\n\n<script>alert(1)</script>\n');
    expect(box.querySelector("img, script, b")).toBeNull();
    expect(box.textContent).toContain("you");
    expect(box.textContent).toContain("a < b");
    expect(box.textContent).toContain("& a < b <tag>");
  });

  test("a link that may not be one is its words", () => {
    const box = show("[click](javascript:alert(1)) and [here](https://example.org)");
    expect([...box.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual(["https://example.org"]);
    expect(box.textContent).toContain("click");
  });

  test("tables, lists and code", () => {
    const box = show("| a | b |\n|---|---|\n| `x` | **y** |\n\n1. one\n2. two **strong**\n\n```python\nprint(1 < 2)\n```\n");
    expect(box.querySelectorAll("tbody tr")).toHaveLength(1);
    expect(box.querySelectorAll("ol > li")).toHaveLength(2);
    expect(box.querySelector("li strong")?.textContent).toBe("strong");
    expect(screen.getByRole("group").textContent).toBe("print(1 < 2)");
  });
});

describe("the documents themselves", () => {
  test.each(PARTS.map((part) => [part.name, part.page] as const))("%s has a title and sections with addresses of their own", (_, page) => {
    expect(page.title).not.toBe("");
    expect(page.sections.length).toBeGreaterThan(3);
    expect(new Set(page.sections.map(({ id }) => id)).size).toBe(page.sections.length);
  });
});
