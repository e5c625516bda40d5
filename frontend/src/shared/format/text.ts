// Escape sequences of terminals: CSI, OSC (ended by BEL or ST), and the two-character ones.
// oxlint-disable-next-line no-control-regex -- these characters are the point
const ANSI = /\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)?|[@-Z\\^_])|\u009B[0-?]*[ -/]*[@-~]/g;
// oxlint-disable-next-line no-control-regex -- these characters are the point
const CONTROLS = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]/g;
// Marks that turn the direction of text around for what follows them: embeddings, overrides, isolates.
const BIDI = /[\u200E\u200F\u061C\u202A-\u202E\u2066-\u2069]/g;

/** Output of a stranger's program as harmless lines: no terminal codes, no control characters, progress bars' last state only. */
export function plainLog(text: string): string {
  return text
    .replace(ANSI, "")
    .replace(/\r\n/g, "\n")
    .split("\n")
    .map((line) => line.slice(line.replace(/\r+$/, "").lastIndexOf("\r") + 1).replace(/\r+$/, ""))
    .join("\n")
    .replace(CONTROLS, "")
    .replace(BIDI, "");
}

/** A name or title in one line, without what could turn its surroundings around. */
export function plainName(text: string): string {
  return text.replace(ANSI, "").replace(/[\r\n\t]+/g, " ").replace(CONTROLS, "").replace(BIDI, "");
}

/** The first letter as a capital: the server's sentences begin small. */
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
