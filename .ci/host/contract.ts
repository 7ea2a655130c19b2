// Compiled, never run: the engine against the real host's types.
import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";
import { createEngine, type Shared } from "../../plugin/src/engine.ts";
import type { AssembleParams, FactoryContext, HostFunctions } from "../../plugin/src/host.ts";

type Factory = Parameters<OpenClawPluginApi["registerContextEngine"]>[1];
type ContextEngine = Awaited<ReturnType<Factory>>;

declare const shared: Shared;
declare const context: FactoryContext;

// Messages are the host's own objects and pass through as they are, so their type may be the host's.
type Engine = ReturnType<typeof createEngine<typeof delegateCompactionToRuntime>>;
type Passed = Omit<Engine, "assemble" | "ingest" | "ingestBatch" | "afterTurn" | "commitTurn">;
export const engine: Passed = createEngine({ ...shared, compact: delegateCompactionToRuntime }, context);
export const accepted: Pick<ContextEngine, keyof Passed> = engine;

// What the host hands to the other methods has everything that is read of it.
export const assembles = (p: Omit<Parameters<ContextEngine["assemble"]>[0], "messages">): Omit<AssembleParams, "messages"> => p;
export const memory: HostFunctions["memoryPrompt"] = (p) => buildMemorySystemPromptAddition(p);
