/**
 * The daemon's routes, as the engine calls them. A long history is not sent again with every turn: the
 * daemon keeps the last one of a session, and both sides name its first messages by a digest chain.
 */

import { createHash } from "node:crypto";
import type { Daemon } from "./daemon.ts";
import { HarkError } from "./endpoint.ts";

/** What assemble answers: which of the host's messages stay, and what comes between them. */
export interface AssembleAnswer {
  readonly kept: readonly (readonly [from: number, to: number])[];
  readonly insert: readonly { readonly position: number; readonly message: { readonly role: string; readonly [k: string]: unknown } }[];
  readonly estimatedTokens: number;
  readonly promptAuthority?: "assembled" | "preassembly_may_overflow";
  readonly systemPromptAddition?: string;
  readonly contextProjection?: { mode: "per_turn" | "thread_bootstrap"; epoch?: string; fingerprint?: string };
}

/** How many sessions' digests are remembered; losing one costs sending its history once more. */
const REMEMBERED = 256;

export class Client {
  private readonly daemon: Pick<Daemon, "call">;
  private readonly sent = new Map<string, string[]>(); // session → chain values after each message

  constructor(daemon: Pick<Daemon, "call">) {
    this.daemon = daemon;
  }

  /** Calls a lifecycle method of an agent. `params` must be free of runtimeContext: see `outgoing`. */
  async call(agent: string, method: string, params: object, ms: number, signal?: AbortSignal): Promise<unknown> {
    return await this.post(agent, method, JSON.stringify(params), ms, signal);
  }

  /** The host's cursor after the last page that the daemon stored of a session; "" for none. */
  async cursor(agent: string, session: { key: string; id: string }, ms: number, signal?: AbortSignal): Promise<string> {
    const query = new URLSearchParams({ session: session.key, sessionId: session.id });
    const path = `/v1/agents/${encodeURIComponent(agent)}/cursor?${query}`;
    const answer = await this.daemon.call({ method: "GET", path }, ms, "cursor", signal);
    const { cursor } = answer as { cursor?: unknown };
    return typeof cursor === "string" ? cursor : "";
  }

  /** Assembles, sending only the messages that the daemon has not seen of this session. */
  async assemble(
    agent: string,
    session: string,
    params: object,
    messages: readonly unknown[],
    ms: number,
    signal?: AbortSignal,
  ): Promise<AssembleAnswer> {
    const until = performance.now() + ms;
    const texts = messages.map((m) => JSON.stringify(m) ?? "null");
    const chain = chainOf(texts);
    const head = JSON.stringify(params).slice(1, -1); // the fields, without the braces
    const place = `${agent}\n${session}`;
    const common = commonLength(this.sent.get(place), chain);
    const join = (tail: string): string => `{${head === "" ? "" : head + ","}${tail}}`;
    const part = `"history":{"base":"${chain[common]!}","count":${common},"messages":[${texts.slice(common).join(",")}]}`;
    let answer: unknown;
    try {
      answer = await this.post(agent, "assemble", join(part), ms, signal);
    } catch (error) {
      if (!(error instanceof HarkError) || error.code !== "resend") throw error;
      this.sent.delete(place);
      const left = Math.max(1, until - performance.now());
      answer = await this.post(agent, "assemble", join(`"messages":[${texts.join(",")}]`), left, signal);
    }
    this.remember(place, chain);
    return answer as AssembleAnswer;
  }

  private async post(agent: string, method: string, body: string, ms: number, signal?: AbortSignal): Promise<unknown> {
    const path = `/v1/agents/${encodeURIComponent(agent)}/${method}`;
    return await this.daemon.call({ method: "POST", path, body }, ms, method, signal);
  }

  private remember(place: string, chain: string[]): void {
    this.sent.delete(place); // the map's order is the order of use
    this.sent.set(place, chain);
    if (this.sent.size > REMEMBERED) this.sent.delete(this.sent.keys().next().value!);
  }
}

/** The chain values over the first 0, 1, 2, … messages: d0 = sha256(""), d(i+1) = sha256(d(i) ‖ sha256(m(i))). */
export function chainOf(texts: readonly string[]): string[] {
  let at = createHash("sha256").digest();
  const chain = [at.toString("hex")];
  for (const text of texts) {
    const one = createHash("sha256").update(text, "utf8").digest();
    at = createHash("sha256").update(at).update(one).digest();
    chain.push(at.toString("hex"));
  }
  return chain;
}

/** How many messages two chains have in common. Equal values mean equal beginnings, so this may halve. */
function commonLength(old: readonly string[] | undefined, now: readonly string[]): number {
  if (!old) return 0;
  let low = 0;
  let high = Math.min(old.length, now.length) - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (old[middle] === now[middle]) low = middle;
    else high = middle - 1;
  }
  return low;
}
