/** The modules of the host that the plugin imports, as far as it uses them. */

declare const PLUGIN_VERSION: string;

declare module "openclaw/plugin-sdk/plugin-entry" {
  import type { Command } from "./cli.ts";
  import type { FactoryContext, Logger } from "./host.ts";
  import type { CorpusSupplement, HostConfig, MemoryCapability, ToolFactory } from "./hostmemory.ts";

  export interface OpenClawPluginApi {
    readonly id: string;
    readonly registrationMode: string;
    readonly config: HostConfig;
    readonly pluginConfig?: Record<string, unknown>;
    readonly rootDir?: string;
    readonly logger: Logger;
    readonly lifecycle?: { onDispose?(dispose: () => void | Promise<void>): unknown };
    readonly runtime: {
      readonly config?: { current?(): HostConfig };
      readonly agent: { resolveAgentWorkspaceDir(cfg: HostConfig, agent: string): string };
    };
    registerContextEngine(id: string, factory: (ctx: FactoryContext) => unknown): void;
    registerMemoryCapability(capability: MemoryCapability): void;
    registerMemoryCorpusSupplement(supplement: CorpusSupplement): void;
    registerTool(factory: ToolFactory, options: { names: string[] }): void;
    registerCli(
      register: (ctx: { readonly program: Command }) => void,
      options: { descriptors: { name: string; description: string; hasSubcommands: boolean }[] },
    ): void;
  }

  export function definePluginEntry(entry: {
    id: string;
    name: string;
    description: string;
    register(api: OpenClawPluginApi): void;
  }): unknown;
}

declare module "openclaw/plugin-sdk/core" {
  import type { MemoryPromptParams } from "./host.ts";

  export function buildMemorySystemPromptAddition(p: MemoryPromptParams): string | undefined;
  export function delegateCompactionToRuntime(p: unknown): Promise<unknown>;
}

declare module "openclaw/plugin-sdk/session-transcript-runtime" {
  import type { TranscriptDelta, TranscriptQuery } from "./host.ts";

  export function readSessionTranscriptVisibleMessageDelta(q: TranscriptQuery): Promise<TranscriptDelta>;
}

declare module "openclaw/plugin-sdk/session-store-runtime" {
  export function listSessionEntries(p: { agentId: string; readOnly?: boolean }): {
    sessionKey: string;
    entry: { sessionId?: string; updatedAt?: number };
  }[];
}

declare module "openclaw/plugin-sdk/memory-host-core" {
  import type { HostConfig, PublicArtifact } from "./hostmemory.ts";

  export function listMemoryHostPublicArtifacts(p: { cfg: HostConfig }): Promise<PublicArtifact[]>;
}

declare module "openclaw/plugin-sdk/memory-core-host-runtime-core" {
  import type { OriginClass } from "./hostmemory.ts";

  export function readMemoryArtifactProvenance(p: { workspaceDir: string; relativePath: string }): Promise<{ originClass: OriginClass } | undefined>;
}
