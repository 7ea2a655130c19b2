/** The host's log, without saying the same thing on every turn. */

import type { Logger } from "./host.ts";

/** Wraps a log so that a line is repeated at most once in `ms` milliseconds. */
export function quieter(log: Logger, ms = 60_000): Logger {
  const said = new Map<string, number>();
  const once = (say: (line: string) => void) => (line: string) => {
    const now = performance.now();
    const last = said.get(line);
    if (last !== undefined && now - last < ms) return;
    if (said.size > 200) said.clear();
    said.set(line, now);
    say(line);
  };
  return {
    info: once((line) => log.info(line)),
    warn: once((line) => log.warn(line)),
    error: once((line) => log.error(line)),
  };
}
