/**
 * The host's side of the contract, as far as Hark uses it: the parameters and results of a context
 * engine of OpenClaw 2026.9. Messages are the host's own objects and are never changed.
 */

/** A message of a conversation. Everything but the role is the host's business. */
export interface AgentMessage {
  readonly role: string;
  readonly [field: string]: unknown;
}

export interface SessionTarget {
  readonly agentId?: string;
  readonly sessionId?: string;
  readonly sessionKey?: string;
  readonly storePath?: string;
  readonly threadId?: string | number;
}

/** What most calls carry. `runtimeContext` holds secrets and never leaves this process. */
export interface SessionParams {
  readonly sessionId: string;
  readonly sessionKey?: string;
  readonly sessionTarget?: SessionTarget;
  readonly runtimeSettings?: unknown;
  readonly runtimeContext?: unknown;
  readonly abortSignal?: AbortSignal;
}

export interface BootstrapParams extends SessionParams {
  readonly sessionFile?: string;
}

export interface BootstrapResult {
  bootstrapped: boolean;
  importedMessages?: number;
  reason?: string;
}

export interface MaintainResult {
  changed: boolean;
  bytesFreed: number;
  rewrittenEntries: number;
  reason?: string;
}

export interface IngestParams extends SessionParams {
  readonly message: AgentMessage;
  readonly isHeartbeat?: boolean;
}

export interface IngestBatchParams extends SessionParams {
  readonly messages: readonly AgentMessage[];
  readonly isHeartbeat?: boolean;
}

export interface AfterTurnParams extends SessionParams {
  readonly sessionFile?: string;
  readonly messages: readonly AgentMessage[];
  readonly prePromptMessageCount: number;
  readonly autoCompactionSummary?: string;
  readonly isHeartbeat?: boolean;
  readonly tokenBudget?: number;
}

export interface EntryAnchor {
  readonly agentId?: string;
  readonly [field: string]: unknown;
}

export interface CommitTurnParams extends SessionParams {
  readonly advancementKey: string;
  readonly admission: EntryAnchor;
  readonly terminal: EntryAnchor;
  readonly messages: readonly AgentMessage[];
  readonly isHeartbeat?: boolean;
}

export interface AssembleParams extends SessionParams {
  readonly messages: AgentMessage[];
  readonly tokenBudget?: number;
  readonly availableTools?: Set<string>;
  readonly citationsMode?: "auto" | "on" | "off";
  readonly model?: string;
  readonly prompt?: string;
}

export interface AssembleResult {
  messages: AgentMessage[];
  estimatedTokens: number;
  promptAuthority?: "assembled" | "preassembly_may_overflow";
  systemPromptAddition?: string;
  contextProjection?: { mode: "per_turn" | "thread_bootstrap"; epoch?: string; fingerprint?: string };
}

export interface SpawnParams {
  readonly parentSessionKey: string;
  readonly childSessionKey: string;
  readonly contextMode?: "isolated" | "fork";
  readonly parentSessionId?: string;
  readonly parentSessionFile?: string;
  readonly childSessionId?: string;
  readonly childSessionFile?: string;
  readonly ttlMs?: number;
}

export interface SubagentEndedParams {
  readonly childSessionKey: string;
  readonly reason: string;
  readonly agentDir?: string;
  readonly workspaceDir?: string;
}

/** What the host hands to a context engine's factory. */
export interface FactoryContext {
  readonly agentDir?: string;
  readonly workspaceDir?: string;
}

/** The host's log of a plugin. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
  debug?(message: string): void;
}

/** What the host renders the memory section from; a run's values have to be passed on unchanged. */
export interface MemoryPromptParams {
  availableTools: Set<string>;
  citationsMode?: "auto" | "on" | "off";
  agentSessionKey?: string;
}

/** One row of the host's transcript. */
export interface TranscriptEntry {
  readonly entryId: string;
  readonly parentId?: string | null;
  readonly seq: number;
  readonly role: string;
  readonly createdAt: string;
  readonly idempotencyKey?: string;
  readonly message: AgentMessage;
}

export type TranscriptDelta =
  | {
      readonly kind: "page";
      readonly cursor: string;
      readonly hasMore: boolean;
      readonly requiredBytes?: number;
      readonly entries: readonly TranscriptEntry[];
    }
  | { readonly kind: "reset"; readonly cursor: string; readonly reason: string }
  | { readonly kind: "missing" }
  | { readonly kind: "unavailable"; readonly reason: string };

export interface TranscriptQuery {
  agentId: string;
  sessionKey: string;
  sessionId: string;
  cursor?: string;
  maxMessages?: number;
  maxBytes?: number;
}

/** The host's functions that Hark calls, given to it so that tests can play the host. */
export interface HostFunctions {
  memoryPrompt(p: MemoryPromptParams): string | undefined;
  transcript(q: TranscriptQuery): Promise<TranscriptDelta>;
}
