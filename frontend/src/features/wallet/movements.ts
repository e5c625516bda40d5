import { count } from "@/shared/format/numbers";
import type { Movement } from "./queries";

export type Kind = "hold" | "earned" | "returned" | "welcome" | "granted" | "other";

const KINDS: Record<string, Kind> = { hold: "hold", subtask: "earned", attempt: "earned", release: "returned", welcome: "welcome", grant: "granted" };

export const NAMES: Record<Kind, string> = {
  hold: "Held for a job",
  earned: "Earned",
  returned: "Returned",
  welcome: "Welcome bonus",
  granted: "Granted",
  other: "Moved",
};

/** What a movement was, as its reference tells. */
export function kindOf(movement: Pick<Movement, "reference">): Kind {
  const [name = ""] = movement.reference.split(":", 1);
  return Object.hasOwn(KINDS, name) ? (KINDS[name] ?? "other") : "other";
}

/** The job whose escrow is on the other side, if there is one. */
export function jobOf(movement: Pick<Movement, "other">): number | null {
  const found = /^escrow:(\d+)$/.exec(movement.other);
  return found ? Number(found[1]) : null;
}

/** "+5" or "−5", with the sign that is as wide as a digit. */
export function signed(amount: number): string {
  return `${amount < 0 ? "−" : "+"}${count(Math.abs(amount))}`;
}

/** The server's reason without what the row says already: `job 3: title` -> `title`. */
export function detailOf(movement: Pick<Movement, "reason" | "other" | "reference">): string {
  const job = jobOf(movement);
  if (kindOf(movement) === "welcome") return "";
  return job === null ? movement.reason : movement.reason.replace(new RegExp(`^job ${job}\\b[:,]?\\s*`), "");
}

/** Where a movement's job can be looked at: buyers have its page, sellers the tasks they did for it. */
export function linkOf(movement: Pick<Movement, "reference" | "other">): string | null {
  const job = jobOf(movement);
  if (job === null) return null;
  return kindOf(movement) === "earned" ? `/app/machines?job=${job}` : `/app/jobs/${job}`;
}
