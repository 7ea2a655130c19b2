/** The search manager that the host asks for while Hark holds its memory slot. */

import type { AgentMemory } from "./agentmemory.ts";
import type { EmbeddingProbe, MemoryHit, ProviderStatus, ReadResult, SearchManager, SearchOptions, SyncParams } from "./hostmemory.ts";
import type { Status } from "./memoryclient.ts";

/** Makes a manager of an agent's memory; rejects when the daemon cannot be asked how the memory is. */
export async function openManager(memory: AgentMemory): Promise<SearchManager> {
  return new Manager(memory, await memory.status());
}

class Manager implements SearchManager {
  private readonly memory: AgentMemory;
  private last: Status; // the host asks for the status without waiting
  private syncError: string | undefined;

  constructor(memory: AgentMemory, status: Status) {
    this.memory = memory;
    this.last = status;
  }

  async search(query: string, opts: SearchOptions = {}): Promise<MemoryHit[]> {
    const { maxResults, minScore, lexicalOnly, sources, sessionKey } = opts;
    const q = { query, maxResults, minScore, lexicalOnly, sources, citations: "off" as const };
    const found = await this.memory.search({ sessionKey }, q, opts.signal);
    opts.onDebug?.({ backend: "builtin", effectiveMode: found.mode });
    return found.results;
  }

  // The host does not say for whom it reads, so this reads files only.
  async readFile(p: { relPath: string; from?: number; lines?: number }): Promise<ReadResult> {
    const { relPath: path, from, lines } = p;
    return await this.memory.get({}, { path, ...(from === undefined ? {} : { from }), ...(lines === undefined ? {} : { lines }) });
  }

  status(): ProviderStatus {
    const s = this.last;
    return {
      backend: "builtin",
      provider: s.provider,
      ...(s.model ? { model: s.model } : {}),
      files: s.files,
      chunks: s.chunks,
      dirty: s.dirty,
      ...(this.syncError ? { lastSyncError: this.syncError } : {}),
      ...(s.workspaceDir ? { workspaceDir: s.workspaceDir } : {}),
      extraPaths: [...this.memory.settings.extraPaths],
      sources: ["memory", "sessions"],
      sourceCounts: s.sourceCounts,
      fts: { enabled: true, available: true },
      vector: { ...s.vector, storeAvailable: s.vector.available, semanticAvailable: s.vector.available },
      custom: { ...s.custom, messages: s.messages, ...(s.warning ? { warning: s.warning } : {}) },
    };
  }

  async sync(p: SyncParams = {}): Promise<void> {
    try {
      await this.memory.sync(p);
      this.syncError = undefined;
      this.last = await this.memory.status();
    } catch (error) {
      this.syncError = error instanceof Error ? error.message : String(error);
      throw error;
    }
  }

  getCachedEmbeddingAvailability(): EmbeddingProbe | null {
    return probeOf(this.last);
  }

  async probeEmbeddingAvailability(): Promise<EmbeddingProbe> {
    try {
      this.last = await this.memory.status();
    } catch (error) {
      return { ok: false, checked: true, error: error instanceof Error ? error.message : String(error) };
    }
    return probeOf(this.last);
  }

  async probeVectorStoreAvailability(): Promise<boolean> {
    return (await this.probeEmbeddingAvailability()).ok;
  }

  async probeVectorAvailability(): Promise<boolean> {
    return (await this.probeEmbeddingAvailability()).ok;
  }

  // The daemon ends by itself when nobody needs it.
  async close(): Promise<void> {}
}

function probeOf(s: Status): EmbeddingProbe {
  if (s.vector.available) return { ok: true, checked: true };
  const error = s.vector.enabled ? s.warning ?? "the embedder does not answer; words are searched" : 'the option embedder.provider is "none": words are searched';
  return { ok: false, checked: true, error };
}
