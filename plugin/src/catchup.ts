/** Bringing a session of the host's store to Hark outside a turn. */

import type { Client } from "./client.ts";
import type { Config } from "./config.ts";
import type { HostFunctions, Logger } from "./host.ts";
import type { StoredSession } from "./hostmemory.ts";
import type { Ledger } from "./ledger.ts";
import { isInternal } from "./params.ts";
import { type CaughtUp, reconcile } from "./reconcile.ts";

export interface CatchUpDeps {
  readonly config: Config;
  readonly client: Client;
  readonly functions: Pick<HostFunctions, "transcript">;
  readonly log: Logger;
  readonly ledger: Ledger;
  /** When a session had last changed when all of it was read, by the session's id. */
  readonly heard: Map<string, number>;
}

/** Reads on in one session; whether nothing is left. Rows that come again are stored once. */
export async function catchUp(deps: CatchUpDeps, agent: string, session: StoredSession, limits: { ms: number; signal?: AbortSignal }): Promise<boolean> {
  if (isInternal({ sessionKey: session.key })) return true;
  return (await readOn(deps, agent, session, limits)).pending === undefined;
}

/** Reads on in one session and says how much of it was new. */
export async function readOn(deps: CatchUpDeps, agent: string, session: StoredSession, limits: { ms: number; signal?: AbortSignal }): Promise<CaughtUp> {
  const target = { agentId: agent, sessionId: session.id, sessionKey: session.key };
  const params = { sessionId: session.id, sessionKey: session.key, sessionTarget: target };
  const bounds = { ms: limits.ms, askMs: Math.min(limits.ms, deps.config.commitDeadlineMs) };
  return await reconcile(deps.functions, deps.client, { agent, key: session.key, id: session.id }, params, bounds, limits.signal);
}
