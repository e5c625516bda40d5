import { joinNotebook } from "./notebook";

export type Sorted =
  | { kind: "script"; name: string; text: string }
  | { kind: "requirements"; name: string; text: string }
  | { kind: "data"; file: File }
  | { kind: "model"; file: File }
  | { kind: "refused"; name: string; problem: string };

const MOST_TEXT_BYTES = 1024 * 1024;
const MOST_NOTEBOOK_BYTES = 20 * 1024 * 1024;

/** What a file is for, by its name: .py and .ipynb train, .txt requires, .pth is a model to start from, everything tabular is data. */
export async function sortFile(file: File): Promise<Sorted> {
  const name = file.name;
  const refused = (problem: string): Sorted => ({ kind: "refused", name, problem });
  if (/\.py$/i.test(name)) {
    if (file.size > MOST_TEXT_BYTES) return refused("a script may have at most 1 MiB");
    return { kind: "script", name, text: await file.text() };
  }
  if (/\.ipynb$/i.test(name)) {
    if (file.size > MOST_NOTEBOOK_BYTES) return refused("this notebook has more than 20 MiB; clear its outputs and save it again");
    const joined = joinNotebook(await file.text());
    return "script" in joined ? { kind: "script", name, text: joined.script } : refused(joined.problem);
  }
  if (/\.(csv|tsv|data)$/i.test(name)) return file.size > 0 ? { kind: "data", file } : refused("this file is empty");
  if (/\.(txt|in)$/i.test(name)) {
    if (file.size > 64 * 1024) return refused("requirements may have at most 64 KiB; if this is data, name it .csv");
    return { kind: "requirements", name, text: await file.text() };
  }
  if (/\.(pth|pt)$/i.test(name)) return file.size > 0 ? { kind: "model", file } : refused("this file is empty");
  return refused("Grid-X takes a .py or .ipynb, a requirements.txt, a .csv and, to start from, a .pth");
}
