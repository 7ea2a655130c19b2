/** Pieces of a host's memory slot for tests. */

import type { MemoryDeps } from "../src/agentmemory.ts";
import type { HostFunctions } from "../src/host.ts";
import type { HostConfig, MemoryFunctions, MemoryHit } from "../src/hostmemory.ts";
import { MemoryClient } from "../src/memoryclient.ts";
import { type Handler, usual } from "./fake-daemon.ts";
import { stage } from "./play.ts";

export const hit = (more: Partial<MemoryHit> = {}): MemoryHit => ({ path: "MEMORY.md", startLine: 3, endLine: 5, score: 0.8, snippet: "codes are in the safe", source: "memory", ...more });

/** A host's configuration with Hark in both slots. */
export function slotConfig(search: object = {}): HostConfig {
  return {
    plugins: { slots: { contextEngine: "hark", memory: "hark" } },
    memory: { search: { extraPaths: ["notes", { path: "/srv/wiki", pattern: "*.md" }], ...search } },
  };
}

export interface MemoryStage {
  deps: MemoryDeps;
  lines: string[];
  host: MemoryFunctions;
}

export function memoryStage(dataDir: string, options: object = {}, functions: Partial<HostFunctions> = {}): MemoryStage {
  const { shared, lines } = stage(dataDir, { toolDeadlineMs: 20_000, ...options }, functions);
  const { config, client, log, ledger } = shared;
  const host: MemoryFunctions = {
    agents: () => ["main"],
    workspaceOf: (_cfg, agent) => `/ws/${agent}`,
    sessions: async () => [],
    publicArtifacts: async () => [],
    provenance: async () => undefined,
  };
  const deps = { config, client, functions: shared.functions, log, ledger, heard: new Map<string, number>(), memory: new MemoryClient(client), host };
  return { deps, lines, host };
}

const message = { id: "m7", path: "sessions/s1/m7.md", startLine: 1, endLine: 1, score: 0.7, snippet: "the launch code is 4417", source: "sessions", role: "user", speaker: "Ann", date: "2026-03-01T18:00:00Z", sessionKey: "agent:main:main" };

/** A daemon that knows one file and one message of a direct conversation, which no group gets. */
export function memoryAnswers(status: object = {}): Handler {
  return (seen) => {
    const { body } = seen;
    const direct = typeof body?.sessionKey === "string" && !body.sessionKey.includes(":group:");
    switch (seen.path.split("?")[0]!.split("/").at(-1)) {
      case "memorySearch": {
        const results = [...(body.corpus === "sessions" ? [] : [hit()]), ...(direct && body.corpus !== "memory" ? [message] : [])];
        return { body: { results, provider: "builtin", model: "potion", mode: "hybrid", files: 1, messages: 1 } };
      }
      case "memoryGet":
        if (body.path === "MEMORY.md") return { body: { status: "ok", path: body.path, text: "line 3\nline 4", from: 3, lines: 2, total: 9, truncated: true, nextFrom: 5 } };
        if (body.path === message.path && direct) return { body: { status: "ok", path: body.path, text: message.snippet } };
        if (!body.path.endsWith(".md")) return { status: 400, body: { error: { code: "bad-request", message: "that is no memory file" } } };
        return { body: { status: "not_found", path: body.path, text: "" } };
      case "memoryStatus":
        return {
          body: {
            backend: "builtin", provider: "builtin", model: "potion", workspaceDir: body.workspace, files: 2, chunks: 9, messages: 4, dirty: false,
            sources: ["memory", "sessions"], sourceCounts: [{ source: "memory", files: 2, chunks: 9 }, { source: "sessions", files: 1, chunks: 4 }],
            fts: { enabled: true, available: true }, vector: { enabled: true, available: true, dims: 256 }, custom: { hark: { version: "test" } }, ...status,
          },
        };
      case "memorySync":
        return { body: { files: 2, added: 0, changed: 1, removed: 0, chunks: 9, ms: 3 } };
      case "memoryAuthorize":
        return { body: { allowed: body.hits.flatMap((h: any, i: number) => (h.source === "memory" || direct ? [i] : [])) } };
      case "open":
        if (!direct || body.id !== "m7") return { status: 404, body: { error: { code: "not-found", message: "no such message" } } };
        return { body: { session: "agent:main:main", messages: [{ id: "m6", role: "assistant", date: "2026-03-01T17:59:00Z", text: "Which code?" }, { id: "m7", role: "user", speaker: "Ann", date: "2026-03-01T18:00:00Z", text: message.snippet }] } };
      case "forgetOne":
        if (body.id !== "m7") return { body: { found: false, forgotten: false } };
        return { body: { found: true, forgotten: body.confirm === true, preview: { role: "user", date: "2026-03-01T18:00:00Z", chars: 23 } } };
      default:
        return usual(seen);
    }
  };
}
