/**
 * The daemon's memory methods with their results checked. Who asks is part of every call; which
 * messages that requester may see is decided by the daemon alone.
 */

import type { Client } from "./client.ts";
import type { CitationsMode, ExtraPath, MemoryHit, MemorySource, ReadResult } from "./hostmemory.ts";

/** Who asks. Without a session key no message is found, and no private file. */
export interface Requester {
  readonly sessionKey?: string | undefined;
  readonly sandboxed?: boolean | undefined;
  readonly senderIsOwner?: boolean | undefined;
}

/** Where an agent's memory files are. */
export interface Files {
  readonly workspace: string | undefined;
  readonly extraPaths: readonly ExtraPath[];
}

export interface Question {
  readonly query: string;
  readonly maxResults?: number | undefined;
  readonly minScore?: number | undefined;
  readonly corpus?: "memory" | "sessions" | "all";
  readonly sources?: readonly MemorySource[] | undefined;
  readonly lexicalOnly?: boolean | undefined;
  readonly citations?: CitationsMode;
}

export interface Found {
  readonly results: MemoryHit[];
  readonly provider: string;
  readonly model: string;
  readonly mode: string;
  readonly partial: boolean;
  readonly stale: boolean;
  readonly warning: string | undefined;
}

export interface Status {
  readonly provider: string;
  readonly model: string;
  readonly workspaceDir: string | undefined;
  readonly files: number;
  readonly chunks: number;
  readonly messages: number;
  readonly dirty: boolean;
  readonly sourceCounts: { source: MemorySource; files: number; chunks: number }[];
  readonly vector: { enabled: boolean; available: boolean; dims?: number };
  readonly custom: Record<string, unknown>;
  readonly warning: string | undefined;
}

export interface Opened {
  readonly session: string;
  readonly messages: { id: string; role: string; speaker?: string; date?: string; text: string; cut?: boolean }[];
}

export interface Forgotten {
  readonly found: boolean;
  readonly forgotten: boolean;
  readonly preview?: { role?: string; date?: string; chars?: number };
}

type Fields = Record<string, unknown>;

export class MemoryClient {
  private readonly client: Pick<Client, "call">;

  constructor(client: Pick<Client, "call">) {
    this.client = client;
  }

  async search(agent: string, who: Requester, files: Files, q: Question, ms: number, signal?: AbortSignal): Promise<Found> {
    const told = await this.call(agent, "memorySearch", { ...q, ...files, ...who }, ms, signal);
    return {
      results: list(told.results).filter(isHit),
      provider: text(told.provider),
      model: text(told.model),
      mode: text(told.mode),
      partial: told.partial === true,
      stale: told.stale === true,
      warning: text(told.warning) || undefined,
    };
  }

  async get(agent: string, who: Requester, files: Files, p: { path: string; from?: number; lines?: number }, ms: number, signal?: AbortSignal): Promise<ReadResult> {
    const told = await this.call(agent, "memoryGet", { ...p, ...files, ...who }, ms, signal);
    if (told.status !== "ok") return { status: "not_found", text: "", path: text(told.path) || p.path };
    const { from, lines, nextFrom } = told;
    return {
      status: "ok",
      text: text(told.text),
      path: text(told.path) || p.path,
      ...(typeof from === "number" ? { from } : {}),
      ...(typeof lines === "number" ? { lines } : {}),
      ...(told.truncated === true ? { truncated: true } : {}),
      ...(typeof nextFrom === "number" && nextFrom > 0 ? { nextFrom } : {}),
    };
  }

  async status(agent: string, files: Files, ms: number): Promise<Status> {
    const told = await this.call(agent, "memoryStatus", { ...files }, ms);
    const vector = fields(told.vector);
    return {
      provider: text(told.provider) || "builtin",
      model: text(told.model),
      workspaceDir: text(told.workspaceDir) || files.workspace,
      files: count(told.files),
      chunks: count(told.chunks),
      messages: count(told.messages),
      dirty: told.dirty === true,
      sourceCounts: list(told.sourceCounts).map(fields).filter((c) => c.source === "memory" || c.source === "sessions")
        .map((c) => ({ source: c.source as MemorySource, files: count(c.files), chunks: count(c.chunks) })),
      vector: { enabled: vector.enabled === true, available: vector.available === true, ...(count(vector.dims) > 0 ? { dims: count(vector.dims) } : {}) },
      custom: fields(told.custom),
      warning: text(told.warning) || undefined,
    };
  }

  async sync(agent: string, files: Files, p: { reason?: string | undefined; force?: boolean | undefined }, ms: number, signal?: AbortSignal): Promise<{ files: number; chunks: number; problems: string[] }> {
    const told = await this.call(agent, "memorySync", { ...p, ...files }, ms, signal);
    return { files: count(told.files), chunks: count(told.chunks), problems: list(told.problems).map(String) };
  }

  /** The hits that may be seen. A daemon that does not say so allows none. */
  async authorize(agent: string, who: Requester, files: Files, hits: readonly MemoryHit[], ms: number): Promise<MemoryHit[]> {
    const refs = hits.map(({ path, source }) => ({ path, source }));
    const told = await this.call(agent, "memoryAuthorize", { hits: refs, ...files, ...who }, ms);
    return list(told.allowed).flatMap((i) => (typeof i === "number" && hits[i] ? [hits[i]] : []));
  }

  async open(agent: string, who: Requester, p: { id: string; before?: number; after?: number; maxTokens: number }, ms: number, signal?: AbortSignal): Promise<Opened> {
    const told = await this.call(agent, "open", { ...p, ...who }, ms, signal);
    const messages = list(told.messages).map(fields).map((m) => ({
      id: text(m.id),
      role: text(m.role),
      ...(text(m.speaker) ? { speaker: text(m.speaker) } : {}),
      ...(text(m.date) ? { date: text(m.date) } : {}),
      text: text(m.text),
      ...(m.cut === true ? { cut: true } : {}),
    }));
    return { session: text(told.session), messages };
  }

  async forget(agent: string, who: Requester, id: string, confirm: boolean, ms: number, signal?: AbortSignal): Promise<Forgotten> {
    const told = await this.call(agent, "forgetOne", { id, confirm, ...who }, ms, signal);
    const preview = fields(told.preview);
    return {
      found: told.found === true,
      forgotten: told.forgotten === true,
      ...(told.preview ? { preview: { role: text(preview.role), date: text(preview.date), chars: count(preview.chars) } } : {}),
    };
  }

  private async call(agent: string, method: string, params: object, ms: number, signal?: AbortSignal): Promise<Fields> {
    return fields(await this.client.call(agent, method, params, ms, signal));
  }
}

const fields = (v: unknown): Fields => (typeof v === "object" && v !== null ? (v as Fields) : {});
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
const text = (v: unknown): string => (typeof v === "string" ? v : "");
const count = (v: unknown): number => (typeof v === "number" && Number.isFinite(v) ? v : 0);

function isHit(v: unknown): v is MemoryHit {
  const h = fields(v);
  return typeof h.path === "string" && typeof h.snippet === "string" && typeof h.score === "number" &&
    typeof h.startLine === "number" && typeof h.endLine === "number" && (h.source === "memory" || h.source === "sessions");
}
