/** What a notebook's code cells come to as one script, or why they cannot. */
export type Joined = { script: string } | { problem: string };

interface Cell {
  cell_type?: unknown;
  source?: unknown;
}

// `%matplotlib inline`, `%%bash`, `!pip install`, `?name`: words to Jupyter, not Python.
const MAGIC = /^\s*(%{1,2}[A-Za-z]|!|\?{1,2}[A-Za-z_])/;

/** Join the code cells of an .ipynb. Jupyter's own commands are refused by cell number, counted from 1 over all cells as Jupyter shows them. */
export function joinNotebook(text: string): Joined {
  let cells: unknown;
  try {
    cells = (JSON.parse(text.replace(/^\uFEFF/, "")) as { cells?: unknown } | null)?.cells;
  } catch {
    return { problem: "this notebook is not JSON; save it again in Jupyter" };
  }
  if (!Array.isArray(cells)) return { problem: "this notebook is of a format before version 4; open and save it in a current Jupyter" };
  const parts: string[] = [];
  for (const [index, cell] of (cells as Cell[]).entries()) {
    if (cell?.cell_type !== "code") continue;
    const source = sourceOf(cell);
    const lines = source.split(/\r\n|\n|\r/);
    const wrong = lines.findIndex((line) => MAGIC.test(line));
    if (wrong >= 0) {
      const shown = (lines[wrong] ?? "").trim().slice(0, 60);
      return { problem: `cell ${index + 1}, line ${wrong + 1}: ${shown} is a command to Jupyter, not Python; remove it (packages go into requirements.txt)` };
    }
    if (source.trim()) parts.push(`# cell ${index + 1}\n${lines.join("\n").trimEnd()}\n`);
  }
  return parts.length > 0 ? { script: parts.join("\n") } : { problem: "this notebook has no code cells" };
}

function sourceOf(cell: Cell): string {
  if (typeof cell.source === "string") return cell.source;
  return Array.isArray(cell.source) ? cell.source.filter((line) => typeof line === "string").join("") : "";
}
