/** One agent's memory as the host's configuration describes it: the ground of the search manager, the tools and the commands. */

import { catchUp, type CatchUpDeps } from "./catchup.ts";
import { HarkError } from "./endpoint.ts";
import type { HostConfig, MemoryFunctions, MemoryHit, ReadResult, StoredSession, SyncParams } from "./hostmemory.ts";
import type { Files, Forgotten, Found, MemoryClient, Opened, Question, Requester, Status } from "./memoryclient.ts";
import { holdsEngineSlot, type MemorySettings, memorySettings } from "./slot.ts";

/** How long reading a workspace may take, in milliseconds: five thousand files on a busy machine. */
export const SYNC_MS = 120_000;

export interface MemoryDeps extends CatchUpDeps {
  readonly memory: MemoryClient;
  readonly host: MemoryFunctions;
}

export class AgentMemory {
  readonly agent: string;
  readonly settings: MemorySettings;
  private readonly deps: MemoryDeps;
  private readonly files: Files;
  private readonly engine: boolean;

  constructor(deps: MemoryDeps, cfg: HostConfig, agent: string, workspace?: string) {
    this.deps = deps;
    this.agent = agent;
    this.settings = memorySettings(cfg, agent, deps.host.workspaceOf(cfg, agent) ?? workspace);
    this.files = { workspace: this.settings.workspace, extraPaths: this.settings.extraPaths };
    this.engine = holdsEngineSlot(cfg);
  }

  private get ms(): number {
    return this.deps.config.toolDeadlineMs;
  }

  async search(who: Requester, q: Question, signal?: AbortSignal): Promise<Found> {
    if (q.corpus !== "memory" && !q.lexicalOnly) await this.hearOthers(who.sessionKey);
    return await this.deps.memory.search(this.agent, who, this.files, q, this.ms, signal);
  }

  async get(who: Requester, p: { path: string; from?: number; lines?: number }, signal?: AbortSignal): Promise<ReadResult> {
    return await this.deps.memory.get(this.agent, who, this.files, p, this.ms, signal);
  }

  async open(who: Requester, p: { id: string; before?: number; after?: number; maxTokens: number }, signal?: AbortSignal): Promise<Opened> {
    return await this.deps.memory.open(this.agent, who, p, this.ms, signal);
  }

  async forget(who: Requester, id: string, confirm: boolean, signal?: AbortSignal): Promise<Forgotten> {
    return await this.deps.memory.forget(this.agent, who, id, confirm, this.ms, signal);
  }

  async status(): Promise<Status> {
    return await this.deps.memory.status(this.agent, this.files, this.ms);
  }

  async authorize(who: Requester, hits: readonly MemoryHit[]): Promise<MemoryHit[]> {
    return await this.deps.memory.authorize(this.agent, who, this.files, hits, this.ms);
  }

  /** Reads changed files, and what the named sessions have that Hark has not; without names, every session. */
  async sync(p: SyncParams, signal?: AbortSignal): Promise<void> {
    const sessions = await this.sessionsOf(p);
    const total = sessions.length + 1;
    await this.readFiles(p.reason, p.force, signal);
    p.progress?.({ completed: 1, total, label: "memory files" });
    for (const [i, session] of sessions.entries()) {
      await catchUp(this.deps, this.agent, session, { ms: SYNC_MS, ...(signal ? { signal } : {}) });
      p.progress?.({ completed: i + 2, total, label: session.key });
    }
    this.deps.ledger.synced(this.agent, p.reason ?? "");
  }

  /** Reads changed memory files; returns how many there are. */
  async readFiles(reason?: string, force?: boolean, signal?: AbortSignal): Promise<number> {
    const done = await this.deps.memory.sync(this.agent, this.files, { reason, force }, SYNC_MS, signal);
    if (done.problems.length > 0) this.deps.log.warn(`hark: ${done.problems.length} memory files could not be read; the first: ${done.problems[0]}`);
    return done.files;
  }

  private async sessionsOf(p: SyncParams): Promise<StoredSession[]> {
    if (!p.sessions) return this.engine ? [] : await this.deps.host.sessions(this.agent);
    const known = p.sessions.some((s) => !s.sessionKey) ? await this.deps.host.sessions(this.agent) : [];
    return p.sessions.flatMap((s) => {
      const key = s.sessionKey ?? known.find((k) => k.id === s.sessionId)?.key;
      return key ? [{ key, id: s.sessionId, updatedAt: 0 }] : [];
    });
  }

  /**
   * Where another context engine runs the turns, nobody brings them to Hark: what was said in other
   * sessions is read before a search, the latest first, as long as the option allows.
   */
  private async hearOthers(own: string | undefined): Promise<void> {
    if (this.engine || this.deps.config.catchUpMs <= 0) return;
    const until = performance.now() + this.deps.config.catchUpMs;
    try {
      const sessions = (await this.deps.host.sessions(this.agent)).filter((s) => s.key !== own && this.deps.heard.get(s.id) !== s.updatedAt);
      sessions.sort((a, b) => b.updatedAt - a.updatedAt || (a.key < b.key ? -1 : 1));
      for (const session of sessions) {
        const left = until - performance.now();
        if (left <= 0) return;
        if (await catchUp(this.deps, this.agent, session, { ms: left })) this.deps.heard.set(session.id, session.updatedAt);
      }
    } catch (error) {
      this.deps.log.warn(`hark: sessions of another context engine were not caught up with: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

/** Why a call failed, and what to do, as a result can say it. */
export function failure(error: unknown): { error: string; action: string } {
  const told = error instanceof HarkError ? error : undefined;
  const reason = error instanceof Error ? error.message : String(error);
  return { error: reason, action: told?.remedy ?? 'Try again in a moment. If it stays, run "openclaw hark doctor".' };
}
