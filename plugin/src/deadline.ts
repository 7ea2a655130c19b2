/** Deadlines that hold also when the process was too busy to read an answer that had come in time. */

import { HarkError } from "./endpoint.ts";

/** A limit on a piece of work. Always end it, or its timer keeps the process. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Milliseconds left, never below 0. */
  left(): number;
  end(): void;
}

/**
 * Starts a deadline of `ms` milliseconds, which also ends when one of `others` aborts. When the time
 * is up, answers that are already in the socket are still read before the signal fires.
 */
export function startDeadline(ms: number, what: string, ...others: readonly (AbortSignal | undefined)[]): Deadline {
  const control = new AbortController();
  const until = performance.now() + ms;
  const fire = (): void => control.abort(new HarkError("deadline", `${what} was not done within ${ms} ms`));
  let late: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    // Timers run before input. One more round lets an answer in that came while the process was busy.
    late = setImmediate(() => (late = setImmediate(fire)));
  }, ms);
  const follow = others.filter((s): s is AbortSignal => s !== undefined);
  const cancel = (event: Event): void => control.abort((event.target as AbortSignal).reason);
  for (const s of follow) {
    if (s.aborted) control.abort(s.reason);
    else s.addEventListener("abort", cancel, { once: true });
  }
  return {
    signal: control.signal,
    left: () => Math.max(0, until - performance.now()),
    end: () => {
      clearTimeout(timer);
      if (late) clearImmediate(late);
      for (const s of follow) s.removeEventListener("abort", cancel);
    },
  };
}

/** Settles as `work` does, or rejects when the signal fires first; the work itself goes on. */
export function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) {
      work.catch(() => undefined);
      return stop();
    }
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
