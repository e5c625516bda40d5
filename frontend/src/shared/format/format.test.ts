import { describe, expect, it } from "vitest";
import { bytes, metric, percent, plural } from "./numbers";
import { plainLog, plainName } from "./text";
import { duration, parseTime, relative } from "./times";

describe("numbers", () => {
  it.each([[null, "–"], [Number.NaN, "–"], [0, "0"], [0.1424, "0.142"], [0.0031, "0.0031"], [0.00028, "0.00028"], [1e-7, "1.00e-7"], [2.3456, "2.346"], [28455, "28,455"], [3.2e7, "3.20e7"]])(
    "metric %s is %s",
    (value, text) => expect(metric(value)).toBe(text),
  );
  it("shows shares as percent and other numbers as they are", () => {
    expect([percent(0.9481), percent(1), percent(1.5), percent(null)]).toEqual(["94.8 %", "100.0 %", "1.500", "–"]);
  });
  it("counts and weighs", () => {
    expect([plural(1, "row"), plural(2000, "row"), plural(2, "copy", "copies")]).toEqual(["1 row", "2,000 rows", "2 copies"]);
    expect([bytes(0), bytes(1536), bytes(200 * 2 ** 20), bytes(null)]).toEqual(["0 B", "1.5 KiB", "200 MiB", "–"]);
  });
});

describe("times", () => {
  it.each([[0.4, "0.4 s"], [21.2, "21 s"], [66, "1 min 6 s"], [3700, "1 h 1 min"], [90_000, "1 day"], [null, "–"]])("%s s last %s", (seconds, text) => expect(duration(seconds)).toBe(text));
  it("says how long ago and how long until", () => {
    const now = new Date("2026-01-02T00:00:00Z");
    const ago = (seconds: number) => relative(new Date(now.getTime() - seconds * 1000), now);
    expect([2, 40, 400, 7300, 90_000, -120].map(ago)).toEqual(["just now", "40 s ago", "6 min ago", "2 h ago", "1 day ago", "in 2 min"]);
  });
  it("takes a time without a zone as UTC", () => {
    expect(parseTime("2026-01-01T00:00:00").getTime()).toBe(parseTime("2026-01-01T00:00:00Z").getTime());
  });
});

describe("hostile text", () => {
  it("loses terminal codes, controls and marks that turn text around", () => {
    expect(plainLog("\u001B[31mred\u001B[0m \u202Eexe.png\u0000 \u001B]0;title\u0007ok")).toBe("red exe.png ok");
    expect(plainName("a\nb\u2066c")).toBe("a bc");
  });
  it("keeps the last state of a progress bar, and tags as text", () => {
    expect(plainLog("10%\r50%\r100%\r\n<b>x</b>\n")).toBe("100%\n<b>x</b>\n");
  });
});
