const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 28455 -> "28,455" */
export const count = (value: number): string => WHOLE.format(value);

/** `plural(1, "row")` -> "1 row"; `plural(2, "copy", "copies")` */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export const credits = (value: number): string => plural(value, "credit");

/** A loss, a delta: three significant digits, exponents only where needed. Nothing -> "–" */
export function metric(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  if (size >= 1000) return count(value);
  return size >= 1 ? value.toPrecision(4) : value.toFixed(size < 0.001 ? 5 : size < 0.01 ? 4 : 3);
}

/** An accuracy between 0 and 1 -> "94.8 %". What is not a share is shown as a number. */
export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value >= 0 && value <= 1 ? `${(value * 100).toFixed(1)} %` : metric(value);
}

/** 1536 -> "1.5 KiB" */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let rest = value;
  let unit = 0;
  while (rest >= 1024 && unit < units.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${unit === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)} ${units[unit]}`;
}
