/** 66.2 -> "1 min 6 s" */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const all = Math.max(0, Math.round(seconds));
  if (seconds > 0 && seconds < 0.95) return `${seconds.toFixed(1)} s`;
  if (all < 60) return `${all} s`;
  if (all < 3600) return all % 60 && all < 600 ? `${Math.floor(all / 60)} min ${all % 60} s` : `${Math.round(all / 60)} min`;
  if (all < 86_400) return all % 3600 >= 60 ? `${Math.floor(all / 3600)} h ${Math.floor((all % 3600) / 60)} min` : `${Math.floor(all / 3600)} h`;
  return days(all);
}

/** How long before `now` something was, or how long until it is. */
export function relative(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  const size = Math.abs(seconds);
  if (size < 5) return "just now";
  const words = size < 60 ? `${Math.floor(size)} s` : size < 3600 ? `${Math.floor(size / 60)} min` : size < 86_400 ? `${Math.floor(size / 3600)} h` : days(size);
  return seconds > 0 ? `${words} ago` : `in ${words}`;
}

function days(seconds: number): string {
  const whole = Math.floor(seconds / 86_400);
  return whole === 1 ? "1 day" : `${whole} days`;
}

const EXACT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const exact = (at: Date): string => EXACT.format(at);

/** The server's times are UTC; some databases give them back without saying so. */
export const parseTime = (text: string): Date => new Date(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);

export const secondsBetween = (from: string, to: string | Date): number =>
  ((typeof to === "string" ? parseTime(to) : to).getTime() - parseTime(from).getTime()) / 1000;
