/** The modules of the host that the plugin imports, as far as it uses them. */

declare const PLUGIN_VERSION: string;

declare module "openclaw/plugin-sdk/plugin-entry" {
  import type { FactoryContext, Logger } from "./host.ts";

  export interface OpenClawPluginApi {
    readonly id: string;
    readonly pluginConfig?: Record<string, unknown>;
    readonly rootDir?: string;
    readonly logger: Logger;
    readonly lifecycle?: { onDispose?(dispose: () => void | Promise<void>): unknown };
    registerContextEngine(id: string, factory: (ctx: FactoryContext) => unknown): void;
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
