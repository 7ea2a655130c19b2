/** The host's functions for the memory slot, of the real host. Modules are loaded when used. */

import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import type { MemoryFunctions, OriginClass } from "./hostmemory.ts";
import { lookup } from "./slot.ts";

export function memoryFunctions(api: OpenClawPluginApi): MemoryFunctions {
  return {
    agents: (cfg) => {
      const entries = lookup(cfg, "agents", "entries");
      const named = typeof entries === "object" && entries !== null ? Object.keys(entries) : [];
      return named.length > 0 ? named.sort() : ["main"];
    },
    workspaceOf: (cfg, agent) => api.runtime.agent.resolveAgentWorkspaceDir(cfg, agent),
    sessions: async (agent) => {
      const sdk = await import("openclaw/plugin-sdk/session-store-runtime");
      return sdk.listSessionEntries({ agentId: agent, readOnly: true }).flatMap(({ sessionKey, entry }) =>
        entry.sessionId ? [{ key: sessionKey, id: entry.sessionId, updatedAt: typeof entry.updatedAt === "number" ? entry.updatedAt : 0 }] : [],
      );
    },
    publicArtifacts: async (cfg) => {
      const sdk = await import("openclaw/plugin-sdk/memory-host-core");
      return await sdk.listMemoryHostPublicArtifacts({ cfg });
    },
    provenance: async (p) => await recorded(p),
  };
}

/** Where the host's record of a file's origin is out of a plugin's reach, there is none. */
async function recorded(p: { workspaceDir: string; relativePath: string }): Promise<OriginClass | undefined> {
  try {
    const sdk = await import("openclaw/plugin-sdk/memory-core-host-runtime-core");
    return (await sdk.readMemoryArtifactProvenance(p))?.originClass;
  } catch {
    return undefined;
  }
}
