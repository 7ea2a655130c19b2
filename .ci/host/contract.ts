// Compiled, never run: the engine against the real host's types.
import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";
import { listMemoryHostPublicArtifacts } from "openclaw/plugin-sdk/memory-host-core";
import { listSessionEntries } from "openclaw/plugin-sdk/session-store-runtime";
import type { MemoryDeps } from "../../plugin/src/agentmemory.ts";
import { memoryCapability } from "../../plugin/src/capability.ts";
import { type CliDeps, type Command, registerCli } from "../../plugin/src/cli.ts";
import { createEngine, type Shared } from "../../plugin/src/engine.ts";
import type { AssembleParams, FactoryContext, HostFunctions } from "../../plugin/src/host.ts";
import type { PublicArtifact } from "../../plugin/src/hostmemory.ts";
import { corpusSupplement } from "../../plugin/src/supplement.ts";
import { toolFactories } from "../../plugin/src/tools.ts";

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

// What the memory slot, the corpus, the tools and the command give to the host, and what they take of it.
declare const deps: () => MemoryDeps;
declare const api: OpenClawPluginApi;
api.registerMemoryCapability(memoryCapability(deps));
api.registerMemoryCorpusSupplement(corpusSupplement(deps, () => api.config));
for (const [name, factory] of toolFactories(deps, true, () => api.config)) api.registerTool(factory as Extract<Parameters<typeof api.registerTool>[0], (ctx: never) => unknown>, { names: [name] });
api.registerCli(({ program }) => registerCli(program as unknown as Command, () => ({}) as CliDeps, () => api.config), { descriptors: [] });
export const workspace: string = api.runtime.agent.resolveAgentWorkspaceDir(api.config, "main");
export const artifacts = (): Promise<PublicArtifact[]> => listMemoryHostPublicArtifacts({ cfg: api.config });
export const sessions = (): { sessionKey: string; entry: { sessionId?: string; updatedAt?: number } }[] => listSessionEntries({ agentId: "main", readOnly: true });
