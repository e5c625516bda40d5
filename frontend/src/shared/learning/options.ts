import { count } from "@/shared/format/numbers";

/** An option that is a number, with the server's own default and range. */
export interface NumberOption {
  name: string;
  label: string;
  hint: string;
  usual: number;
  low: number;
  high: number;
  /** The ends of the range belong to it unless these say otherwise. */
  isAboveLow?: true;
  isBelowHigh?: true;
  isWhole?: true;
}

export function isWithin({ low, high, isAboveLow, isBelowHigh, isWhole }: NumberOption, value: number): boolean {
  return (isAboveLow ? value > low : value >= low) && (isBelowHigh ? value < high : value <= high) && (!isWhole || Number.isInteger(value));
}

/** "from 0, below 1"; "above 0, up to 10"; "from 0 to 1,000" */
export function rangeInWords({ low, high, isAboveLow, isBelowHigh }: NumberOption): string {
  const start = `${isAboveLow ? "above" : "from"} ${number(low)}`;
  return isBelowHigh ? `${start}, below ${number(high)}` : `${start}${isAboveLow ? ", up" : ""} to ${number(high)}`;
}

const number = (value: number): string => (Number.isInteger(value) ? count(value) : String(value));
