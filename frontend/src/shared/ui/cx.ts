/** Class names that are there, in one string. */
export const cx = (...names: (string | false | null | undefined)[]): string => names.filter(Boolean).join(" ");
