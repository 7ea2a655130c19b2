/** Pieces of a host for tests. */

import { Client } from "../src/client.ts";
import { readConfig } from "../src/config.ts";
import { Daemon, type Patience } from "../src/daemon.ts";
import { createEngine, type Shared } from "../src/engine.ts";
import { Ledger } from "../src/ledger.ts";
import type { HostFunctions, Logger } from "../src/host.ts";

export const KEY = "agent:main:explicit:s1";
export const delegate = async (): Promise<unknown> => ({ ok: true, compacted: false });

/** Patience for tests: quick where something fails at once, long where a busy machine may be slow. */
export const short: Patience = { hello: 3000, start: 20_000, poll: 10, refused: 200, hung: 150, replace: 60_000 };

/** Patience for the tests in which a daemon does not answer. */
export const impatient: Partial<Patience> = { hello: 100 };

export interface Stage {
  shared: Shared;
  lines: string[];
  engine: ReturnType<typeof createEngine>;
  memoryCalls: unknown[];
  another(): ReturnType<typeof createEngine>;
}

/** One plugin in one process, on a state directory. */
export function stage(dataDir: string, options: object = {}, host: Partial<HostFunctions> = {}, more: Partial<Patience> = {}): Stage {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const log: Logger = { info: say, warn: say, error: say };
  const memoryCalls: unknown[] = [];
  const functions: HostFunctions = {
    memoryPrompt: (p) => {
      memoryCalls.push(p);
      return "## Memory Recall";
    },
    transcript: async () => ({ kind: "missing" }),
    ...host,
  };
  const env = { PATH: process.env.PATH, HOME: dataDir };
  const config = readConfig({ dataDir, deadlineMs: 20_000, commitDeadlineMs: 20_000, ...options }, env);
  const daemon = new Daemon({ config, rootDir: undefined, version: "test", env, log, patience: { ...short, ...more } });
  const shared: Shared = {
    config, version: "test", client: new Client(daemon), functions, compact: delegate, log, ledger: new Ledger(dataDir),
    additions: new Map(), summaries: new Map(),
  };
  const another = (): ReturnType<typeof createEngine> =>
    createEngine(shared, { agentDir: "/state/agents/main/agent", workspaceDir: "/ws" });
  return { shared, lines, engine: another(), memoryCalls, another };
}

export const user = (text: string, at = 1): any => ({ role: "user", content: text, timestamp: at });
export const assistant = (text: string, at = 2): any => ({
  role: "assistant", content: [{ type: "text", text }], stopReason: "stop", timestamp: at,
});

/** An accepted turn as the host commits it; each key is a turn of its own. */
export function turn(key: string, messages: any[], session = KEY): any {
  const place = { agentId: "main", sessionId: "s1", sessionKey: session, generation: "g" };
  const at = 10 * turnNumber(key);
  const last = at + messages.length - 1;
  return {
    advancementKey: key, sessionId: "s1", sessionKey: session, messages,
    admission: { ...place, entryId: `e${at}`, rawSeq: at, effectiveParentId: null, activeMessagePosition: at, logicalTurnId: key, role: "user" },
    terminal: { ...place, entryId: `e${last}`, rawSeq: last, effectiveParentId: `e${last - 1}`, activeMessagePosition: last },
    runtimeContext: { config: { models: { apiKey: "sk-secret" } }, llm: { complete: () => undefined } },
  };
}

const turnNumber = (key: string): number => Number(/\d+$/.exec(key)?.[0] ?? 0);
