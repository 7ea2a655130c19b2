/**
 * Hark's plugin for OpenClaw. Registering starts nothing and opens nothing: the daemon is looked for
 * with the first call of a turn, and the host registers plugins several times in a process.
 */

import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";
import { definePluginEntry, type OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import type { MemoryDeps } from "./agentmemory.ts";
import { memoryCapability } from "./capability.ts";
import { type CliDeps, registerCli } from "./cli.ts";
import { Client } from "./client.ts";
import { readConfig } from "./config.ts";
import { Daemon } from "./daemon.ts";
import { createEngine, ENGINE_ID, type Shared } from "./engine.ts";
import type { HostFunctions } from "./host.ts";
import { Ledger } from "./ledger.ts";
import { quieter } from "./log.ts";
import { MemoryClient } from "./memoryclient.ts";
import { memoryFunctions } from "./memoryhost.ts";
import { dreamsBeside, holdsMemorySlot } from "./slot.ts";
import { corpusSupplement } from "./supplement.ts";
import { toolFactories } from "./tools.ts";

const functions: HostFunctions = {
  memoryPrompt: (p) => buildMemorySystemPromptAddition(p),
  transcript: async (q) => {
    // Imported when used: a host without it still gets everything else.
    const sdk = await import("openclaw/plugin-sdk/session-transcript-runtime");
    return await sdk.readSessionTranscriptVisibleMessageDelta(q);
  },
};

const DREAMS =
  "hark: memory-core is loaded beside Hark for its dreaming, and its memory_search may come first; to have Hark's: openclaw config set plugins.entries.hark.config.dreaming.enabled false";

export default definePluginEntry({
  id: ENGINE_ID,
  name: "Hark",
  description: "Recalls what was said, across sessions",
  register(api: OpenClawPluginApi) {
    let made: ReturnType<typeof share> | undefined;
    const shared = (): ReturnType<typeof share> => (made ??= share(api));
    const config = () => api.runtime.config?.current?.() ?? api.config;
    const memory = (): MemoryDeps => shared().memory;

    api.registerContextEngine(ENGINE_ID, (ctx) => createEngine(shared().engine, ctx ?? {}));
    const inSlot = holdsMemorySlot(api.config);
    if (api.registrationMode === "full" && dreamsBeside(api.config, readConfig(api.pluginConfig, {}).dreaming)) api.logger.warn(DREAMS);
    if (inSlot) api.registerMemoryCapability(memoryCapability(memory));
    // Also in the slot: where memory-core stays loaded for its dreaming, its memory_search may come first.
    api.registerMemoryCorpusSupplement(corpusSupplement(memory, config));
    for (const [name, factory] of toolFactories(memory, inSlot, config)) api.registerTool(factory, { names: [name] });
    api.registerCli(({ program }) => registerCli(program, () => shared().cli, config), {
      descriptors: [{ name: "hark", description: "Search, import and look after what Hark remembers", hasSubcommands: true }],
    });
  },
});

/** What all calls of one registration have in common. */
function share(api: OpenClawPluginApi): { engine: Shared; memory: MemoryDeps; cli: CliDeps } {
  const config = readConfig(api.pluginConfig, process.env);
  const log = quieter(api.logger);
  const daemon = new Daemon({ config, rootDir: api.rootDir, version: PLUGIN_VERSION, env: process.env, log });
  const client = new Client(daemon);
  const ledger = new Ledger(config.dataDir);
  const memory: MemoryDeps = { config, client, functions, log, ledger, heard: new Map(), memory: new MemoryClient(client), host: memoryFunctions(api) };
  return {
    engine: { config, version: PLUGIN_VERSION, client, functions, compact: delegateCompactionToRuntime, log, ledger, additions: new Map(), summaries: new Map() },
    memory,
    cli: { ...memory, daemon, say: (line) => void process.stdout.write(line + "\n"), note: (line) => void process.stderr.write(line + "\n") },
  };
}
