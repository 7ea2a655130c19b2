/**
 * The host's side of the memory slot, as far as Hark uses it: the capability of a memory plugin, its
 * search manager, corpus supplements and agent tools of OpenClaw 2026.9.
 */

/** The host's configuration. Hark reads a few paths of it and hands it back to the host's functions. */
export type HostConfig = { readonly [key: string]: unknown };

export type CitationsMode = "auto" | "on" | "off";
export type MemorySource = "memory" | "sessions";

/** A folder or file whose Markdown is memory too, as the host's configuration names it. */
export type ExtraPath = string | { readonly path: string; readonly pattern?: string };

/** One hit. Lines count from 1; the score is 0 to 1. */
export interface MemoryHit {
  path: string;
  startLine: number;
  endLine: number;
  score: number;
  vectorScore?: number;
  textScore?: number;
  snippet: string;
  source: MemorySource;
  citation?: string;
  // What Hark knows of a message besides:
  id?: string;
  title?: string;
  role?: string;
  speaker?: string;
  date?: string;
  sessionKey?: string;
}

export interface SearchOptions {
  readonly maxResults?: number;
  readonly minScore?: number;
  readonly sessionKey?: string;
  readonly lexicalOnly?: boolean;
  readonly sources?: readonly MemorySource[];
  readonly signal?: AbortSignal;
  onDebug?(debug: { backend: "builtin"; effectiveMode?: string }): void;
}

export type ReadResult =
  | { status: "ok"; text: string; path: string; truncated?: boolean; from?: number; lines?: number; nextFrom?: number }
  | { status: "not_found"; text: ""; path: string };

export interface EmbeddingProbe {
  ok: boolean;
  error?: string;
  checked?: boolean;
}

export interface SyncParams {
  readonly reason?: string;
  readonly force?: boolean;
  readonly sessions?: readonly { readonly agentId?: string; readonly sessionId: string; readonly sessionKey?: string }[];
  readonly archiveFiles?: readonly string[];
  readonly progress?: (update: { completed: number; total: number; label?: string }) => void;
}

export interface ProviderStatus {
  backend: "builtin";
  provider: string;
  model?: string;
  files?: number;
  chunks?: number;
  dirty?: boolean;
  lastSyncError?: string;
  workspaceDir?: string;
  extraPaths?: ExtraPath[];
  sources?: MemorySource[];
  sourceCounts?: { source: MemorySource; files: number; chunks: number }[];
  fts?: { enabled: boolean; available: boolean };
  vector?: { enabled: boolean; available?: boolean; storeAvailable?: boolean; semanticAvailable?: boolean; dims?: number };
  custom?: Record<string, unknown>;
}

/** What the host asks of a memory's index. Methods reject with a readable error when it cannot be reached. */
export interface SearchManager {
  search(query: string, opts?: SearchOptions): Promise<MemoryHit[]>;
  readFile(p: { relPath: string; from?: number; lines?: number }): Promise<ReadResult>;
  status(): ProviderStatus;
  sync(p?: SyncParams): Promise<void>;
  getCachedEmbeddingAvailability(): EmbeddingProbe | null;
  probeEmbeddingAvailability(): Promise<EmbeddingProbe>;
  probeVectorStoreAvailability(): Promise<boolean>;
  probeVectorAvailability(): Promise<boolean>;
  close(): Promise<void>;
}

export interface PromptParams {
  readonly availableTools: Set<string>;
  readonly citationsMode?: CitationsMode;
}

/** What the silent turn before a compaction is to do; null for no such turn. */
export interface FlushPlan {
  softThresholdTokens: number;
  forceFlushTranscriptBytes: number;
  reserveTokensFloor: number;
  model?: string;
  prompt: string;
  systemPrompt: string;
  relativePath: string;
}

/** Whose words a memory file holds; only "owner" and "agent" enter a prompt by themselves. */
export type OriginClass = "owner" | "agent" | "untrusted" | "system";

export interface ClassifyParams {
  readonly workspaceDir: string;
  readonly relativePaths: readonly string[];
  readonly readSources?: readonly { readonly relativePath: string; readonly canonicalRelativePath?: string }[];
}

export interface AuthorizeParams {
  readonly cfg: HostConfig;
  readonly agentId: string;
  readonly requesterSessionKey: string | undefined;
  readonly sandboxed: boolean;
  readonly hits: MemoryHit[];
}

export interface ManagerParams {
  readonly cfg: HostConfig;
  readonly agentId: string;
  readonly purpose?: "default" | "status" | "cli";
}

export interface PublicArtifact {
  kind: string;
  workspaceDir: string;
  relativePath: string;
  absolutePath: string;
  agentIds: string[];
  contentType: "markdown" | "json" | "text";
}

/** What the plugin in the memory slot offers the host. */
export interface MemoryCapability {
  promptBuilder(p: PromptParams): string[];
  flushPlanResolver(p: { cfg?: HostConfig; nowMs?: number; contextWindowTokens?: number }): FlushPlan | null;
  runtime: {
    getMemorySearchManager(p: ManagerParams): Promise<{ manager: SearchManager | null; error?: string }>;
    resolveMemoryBackendConfig(p: unknown): { backend: "builtin" };
    authorizeSearchHits(p: AuthorizeParams): Promise<MemoryHit[]>;
    supportsWorkspaceMemoryReadSources: true;
    classifyWorkspaceMemoryPaths(p: ClassifyParams): Promise<{ relativePath: string; originClass: OriginClass }[]>;
    closeMemorySearchManager(p: unknown): Promise<void>;
    closeAllMemorySearchManagers(): Promise<void>;
  };
  publicArtifacts: { listArtifacts(p: { cfg: HostConfig }): Promise<PublicArtifact[]> };
  deterministicRecallToolName: string;
}

/** One hit that another memory plugin's tools show beside their own. */
export interface CorpusHit {
  corpus: string;
  path: string;
  title?: string;
  kind?: string;
  score: number;
  snippet: string;
  id?: string;
  startLine?: number;
  endLine?: number;
  citation?: string;
  source?: string;
  provenanceLabel?: string;
  updatedAt?: string;
}

export interface CorpusText {
  corpus: string;
  path: string;
  title?: string;
  kind?: string;
  content: string;
  fromLine: number;
  lineCount: number;
}

interface CorpusRequester {
  readonly agentId?: string;
  readonly agentSessionKey?: string;
  readonly sandboxed?: boolean;
}

export interface CorpusSupplement {
  search(p: CorpusRequester & { readonly query: string; readonly maxResults?: number }): Promise<CorpusHit[]>;
  get(p: CorpusRequester & { readonly lookup: string; readonly fromLine?: number; readonly lineCount?: number }): Promise<CorpusText | null>;
}

/** The run a tool was made for. The host fills it; nothing of it comes from the model. */
export interface ToolContext {
  readonly config?: HostConfig;
  readonly runtimeConfig?: HostConfig;
  getRuntimeConfig?(): HostConfig | undefined;
  readonly workspaceDir?: string;
  readonly agentId?: string;
  readonly sessionKey?: string;
  readonly senderIsOwner?: boolean;
  readonly sandboxed?: boolean;
}

export interface ToolResult {
  content: { type: "text"; text: string }[];
  details: unknown;
}

export interface Tool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly parameters: object;
  execute(id: string, params: unknown, signal?: AbortSignal): Promise<ToolResult>;
}

export type ToolFactory = (ctx: ToolContext) => Tool | null;

/** A session of the host's store. */
export interface StoredSession {
  readonly key: string;
  readonly id: string;
  readonly updatedAt: number; // milliseconds since 1970; 0 where the host does not say
}

/** The host's functions that the memory slot needs, given so that tests can play the host. */
export interface MemoryFunctions {
  /** The agents of a configuration. */
  agents(cfg: HostConfig): string[];
  /** An agent's workspace, an absolute path. */
  workspaceOf(cfg: HostConfig, agent: string): string | undefined;
  /** An agent's sessions in the host's store. */
  sessions(agent: string): Promise<StoredSession[]>;
  /** The memory files the host exports to other plugins. */
  publicArtifacts(cfg: HostConfig): Promise<PublicArtifact[]>;
  /** Whose words a file holds, where the host wrote that down. */
  provenance(p: { workspaceDir: string; relativePath: string }): Promise<OriginClass | undefined>;
}
