import { describe, expect, it } from "vitest";
import { parseStart, readStart } from "./csv";

describe("parseStart", () => {
  it("reads quotes, doubled quotes and line ends inside a field", () => {
    const start = parseStart('a,b\r\n"x, ""y""","1\n2"\r\n3,4\r\n', 5);
    expect(start).toEqual({ delimiter: ",", columns: ["a", "b"], rows: [['x, "y"', "1\n2"], ["3", "4"]] });
  });

  it.each([";", "\t", "|"])("finds the delimiter %j", (delimiter) => {
    expect(parseStart(`a${delimiter}b\n1${delimiter}2`, 5)).toEqual({ delimiter, columns: ["a", "b"], rows: [["1", "2"]] });
  });

  it("forgets a byte order mark and blank lines", () => {
    expect(parseStart("\uFEFFa,b\n\n1,2\n\n", 5)).toMatchObject({ columns: ["a", "b"], rows: [["1", "2"]] });
  });

  it("gives as many rows as asked for, and not half a record of a text that was cut", () => {
    expect(parseStart("a\n1\n2\n3\n4", 2).rows).toEqual([["1"], ["2"]]);
    expect(parseStart("a\n1\n2\n34", 5, true).rows).toEqual([["1"], ["2"]]);
  });

  it("reads only the beginning of a large file", async () => {
    const start = await readStart(new Blob(["a,b\n", "1,2\n".repeat(100_000)]));
    expect(start.rows).toHaveLength(5);
  });
});
