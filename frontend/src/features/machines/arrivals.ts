import type { Machine } from "@/shared/machines/hardware";

/** Machines that came since `before` was looked at: unknown then, or offline then and online now. */
export function arrivals(before: readonly Machine[], now: readonly Machine[]): Machine[] {
  const known = new Map(before.map((machine) => [machine.id, machine]));
  return now.filter((machine) => {
    const then = known.get(machine.id);
    return !then || (then.status === "OFFLINE" && machine.status !== "OFFLINE");
  });
}

/** The one command that downloads the worker, installs it, and runs it with the key. */
export function addCommand(server: string, key: string, isProcess = false): string {
  const at = quoted(server);
  const run = `GRIDX_KEY=${quoted(key)} ~/.gridx-worker/venv/bin/gridx-worker run --server ${at}`;
  const own = isProcess ? ' --sandbox process --python "$(command -v python3)"' : "";
  return `curl -fsSL ${quoted(`${server}/install.sh`)} -o gridx-install.sh && sh gridx-install.sh && ${run}${own}`;
}

/** Whether an address means the reader's own computer, so that no other machine can use it. */
export const isLoopback = (server: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(server).hostname);

/** For a POSIX shell. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`);
