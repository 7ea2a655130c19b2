/**
 * Hark's plugin for OpenClaw. Registering starts nothing and opens nothing: the daemon is looked for
 * with the first call of a turn, and the host registers plugins several times in a process.
 */

import { buildMemorySystemPromptAddition, delegateCompactionToRuntime } from "openclaw/plugin-sdk/core";
import { definePluginEntry, type OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import { Client } from "./client.ts";
import { readConfig } from "./config.ts";
import { Daemon } from "./daemon.ts";
import { createEngine, ENGINE_ID, type Shared } from "./engine.ts";
import type { HostFunctions } from "./host.ts";
import { Ledger } from "./ledger.ts";
import { quieter } from "./log.ts";

const functions: HostFunctions = {
  memoryPrompt: (p) => buildMemorySystemPromptAddition(p),
  transcript: async (q) => {
    // Imported when used: a host without it still gets everything else.
    const sdk = await import("openclaw/plugin-sdk/session-transcript-runtime");
    return await sdk.readSessionTranscriptVisibleMessageDelta(q);
  },
};

export default definePluginEntry({
  id: ENGINE_ID,
  name: "Hark",
  description: "Recalls what was said, across sessions",
  register(api: OpenClawPluginApi) {
    let shared: Shared | undefined;
    api.registerContextEngine(ENGINE_ID, (ctx) => createEngine((shared ??= share(api)), ctx ?? {}));
  },
});

function share(api: OpenClawPluginApi): Shared {
  const config = readConfig(api.pluginConfig, process.env);
  const log = quieter(api.logger);
  const daemon = new Daemon({ config, rootDir: api.rootDir, version: PLUGIN_VERSION, env: process.env, log });
  return {
    config,
    version: PLUGIN_VERSION,
    client: new Client(daemon),
    functions,
    compact: delegateCompactionToRuntime,
    log,
    ledger: new Ledger(config.dataDir),
    additions: new Map(),
    summaries: new Map(),
  };
}
