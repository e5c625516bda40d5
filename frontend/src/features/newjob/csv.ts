/** The first records of a CSV, as its owner will recognise them. The server reads the whole file and has the last word. */
export interface CsvStart {
  delimiter: string;
  columns: string[];
  rows: string[][];
}

const DELIMITERS = [",", ";", "\t", "|"];
const START_BYTES = 64 * 1024;

export async function readStart(file: Blob, most = 5): Promise<CsvStart> {
  const isCut = file.size > START_BYTES;
  return parseStart(await file.slice(0, START_BYTES).text(), most, isCut);
}

/** Records of the text's beginning. The last one is left out when the text was cut, because it may be half. */
export function parseStart(text: string, most: number, isCut = false): CsvStart {
  const clean = text.replace(/^\uFEFF/, "");
  const delimiter = guessDelimiter(clean);
  const records = splitRecords(clean, delimiter, most + 2);
  if (isCut && records.length < most + 2) records.pop();
  return { delimiter, columns: records[0] ?? [], rows: records.slice(1, most + 1) };
}

function guessDelimiter(text: string): string {
  const header = text.split(/\r\n|\n|\r/, 1)[0] ?? "";
  const counts = DELIMITERS.map((one) => splitRecords(header, one, 1)[0]?.length ?? 0);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ",";
}

function splitRecords(text: string, delimiter: string, most: number): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let field = "";
  let isQuoted = false;
  const endRecord = () => {
    record.push(field);
    if (record.length > 1 || record[0] !== "") records.push(record);
    record = [];
    field = "";
  };
  for (let at = 0; at < text.length && records.length < most; at += 1) {
    const char = text.charAt(at);
    if (isQuoted) {
      if (char !== '"') field += char;
      else if (text[at + 1] === '"') {
        field += '"';
        at += 1;
      } else isQuoted = false;
    } else if (char === '"' && field === "") isQuoted = true;
    else if (char === delimiter) {
      record.push(field);
      field = "";
    } else if (char === "\n" || char === "\r") {
      if (char === "\r" && text[at + 1] === "\n") at += 1;
      endRecord();
    } else field += char;
  }
  if (records.length < most && (field !== "" || record.length > 0)) endRecord();
  return records;
}
