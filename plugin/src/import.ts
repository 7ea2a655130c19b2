/**
 * Taking in what the host had before Hark: every session of its store through the transcript cursor,
 * and the memory files of the workspaces. The daemon keeps a session's cursor with its messages, so an
 * import can end anywhere and is repeated without storing anything twice.
 */

import { AgentMemory, type MemoryDeps } from "./agentmemory.ts";
import { readOn } from "./catchup.ts";
import type { HostConfig, StoredSession } from "./hostmemory.ts";
import { isInternal } from "./params.ts";

export interface ImportOptions {
  readonly agent: string | undefined;
  readonly dryRun: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
}

export interface Imported {
  agent: string;
  sessions: number;
  /** Messages that were stored now; in a dry run, those that would be offered. */
  messages: number;
  files: number;
  /** Sessions that were not read to their end, each with why. */
  problems: string[];
}

interface Output {
  readonly say: (line: string) => void;
  readonly note: (line: string) => void;
}

const SESSION_MS = 600_000; // for one session: a hundred thousand messages on a slow disk

/** Imports and reports; returns the exit code, 1 where something was left out. */
export async function importHost(deps: MemoryDeps & Output, cfg: HostConfig, o: ImportOptions): Promise<number> {
  const agents = o.agent === undefined ? deps.host.agents(cfg) : [o.agent];
  const done: Imported[] = [];
  for (const agent of agents) done.push(await importAgent(deps, cfg, agent, o));
  if (o.json) deps.say(JSON.stringify({ dryRun: o.dryRun, agents: done }));
  for (const d of o.json ? [] : done) {
    deps.say(`${d.agent}: ${d.messages} ${o.dryRun ? "messages to take in" : "new messages"} from ${d.sessions} sessions, ${d.files} memory files`);
    for (const p of d.problems) deps.say(`  ${p}`);
  }
  return done.some((d) => d.problems.length > 0) ? 1 : 0;
}

async function importAgent(deps: MemoryDeps & Output, cfg: HostConfig, agent: string, o: ImportOptions): Promise<Imported> {
  const out: Imported = { agent, sessions: 0, messages: 0, files: 0, problems: [] };
  const problem = (what: string, error: unknown): void => void out.problems.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  let sessions: StoredSession[] = [];
  try {
    sessions = (await deps.host.sessions(agent)).filter((s) => !isInternal({ sessionKey: s.key }));
  } catch (error) {
    problem("the sessions could not be listed", error);
  }
  for (const [i, session] of sessions.entries()) {
    try {
      const read = o.dryRun ? { imported: await countAhead(deps, agent, session) } : await readOn(deps, agent, session, { ms: SESSION_MS });
      out.sessions++;
      out.messages += read.imported;
      if ("pending" in read && read.pending) problem(session.key, read.pending);
    } catch (error) {
      problem(session.key, error);
    }
    if (!o.quiet) deps.note(`${agent}: session ${i + 1} of ${sessions.length}, ${out.messages} messages`);
  }
  try {
    const memory = new AgentMemory(deps, cfg, agent);
    if (o.dryRun) out.files = memory.settings.workspace === undefined ? 0 : (await memory.status()).files;
    else out.files = await memory.readFiles("import");
  } catch (error) {
    problem("the memory files could not be read", error);
  }
  return out;
}

/** How many messages lie after the cursor that the daemon keeps of a session. */
async function countAhead(deps: MemoryDeps, agent: string, s: StoredSession): Promise<number> {
  let cursor = await deps.client.cursor(agent, s, deps.config.commitDeadlineMs);
  let n = 0;
  for (let resets = 0; ; ) {
    const page = await deps.functions.transcript({ agentId: agent, sessionKey: s.key, sessionId: s.id, ...(cursor === "" ? {} : { cursor }), maxMessages: 1000, maxBytes: 64 << 20 });
    if (page.kind === "reset" && resets++ < 2) cursor = page.cursor;
    else if (page.kind !== "page") return n;
    else {
      n += page.entries.length;
      if (!page.hasMore || page.entries.length === 0) return n;
      cursor = page.cursor;
    }
  }
}
