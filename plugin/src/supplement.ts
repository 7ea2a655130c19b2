/** Hark's messages as a corpus beside the index of another memory plugin, which keeps the memory slot. */

import { AgentMemory, type MemoryDeps } from "./agentmemory.ts";
import type { CorpusSupplement, HostConfig } from "./hostmemory.ts";
import { agentOf } from "./params.ts";
import { describe, speakerOf } from "./results.ts";

const CORPUS = "hark";

/** Makes the supplement. It rejects when the daemon cannot be asked; the host then names it as unavailable. */
export function corpusSupplement(deps: () => MemoryDeps, config: () => HostConfig): CorpusSupplement {
  const memoryFor = (p: { agentId?: string; agentSessionKey?: string }): AgentMemory =>
    new AgentMemory(deps(), config(), p.agentId ?? agentOf(p.agentSessionKey ? { sessionKey: p.agentSessionKey } : {}, {}));
  return {
    async search(p) {
      const who = { sessionKey: p.agentSessionKey, sandboxed: p.sandboxed };
      const found = await memoryFor(p).search(who, { query: p.query, maxResults: p.maxResults, corpus: "sessions", citations: "off" });
      return found.results.map((hit) => ({
        corpus: CORPUS,
        kind: "message",
        path: hit.path,
        title: describe(hit),
        score: hit.score,
        snippet: hit.snippet,
        startLine: hit.startLine,
        endLine: hit.endLine,
        source: hit.source,
        provenanceLabel: `said by ${speakerOf(hit)}`,
        ...(hit.id ? { id: hit.id } : {}),
        ...(hit.date ? { updatedAt: hit.date } : {}),
      }));
    },
    async get(p) {
      if (!p.lookup.startsWith("sessions/")) return null; // another supplement's
      const ask = { path: p.lookup, ...(p.fromLine === undefined ? {} : { from: p.fromLine }), ...(p.lineCount === undefined ? {} : { lines: p.lineCount }) };
      const read = await memoryFor(p).get({ sessionKey: p.agentSessionKey, sandboxed: p.sandboxed }, ask);
      if (read.status !== "ok") return null;
      const lineCount = read.lines ?? read.text.split("\n").length;
      return { corpus: CORPUS, kind: "message", path: read.path, content: read.text, fromLine: read.from ?? 1, lineCount };
    },
  };
}
