/** What the host's configuration says about memory. */

import { ENGINE_ID } from "./engine.ts";
import type { CitationsMode, ExtraPath, HostConfig } from "./hostmemory.ts";

/** How an agent's memory is to be searched. */
export interface MemorySettings {
  readonly enabled: boolean;
  readonly workspace: string | undefined;
  readonly extraPaths: readonly ExtraPath[];
  readonly citations: CitationsMode;
  readonly maxResults: number | undefined;
  readonly minScore: number | undefined;
}

/** Whether Hark is the plugin in the host's memory slot. */
export function holdsMemorySlot(cfg: unknown): boolean {
  return lookup(cfg, "plugins", "slots", "memory") === ENGINE_ID;
}

/**
 * Whether the host loads memory-core beside Hark for its dreaming, so that memory-core's memory_search
 * may come before Hark's. The host reads the option of the plugin in the slot, which is Hark's own.
 */
export function dreamsBeside(cfg: unknown, dreaming: boolean): boolean {
  return holdsMemorySlot(cfg) && dreaming && lookup(cfg, "plugins", "entries", "memory-core", "enabled") !== false;
}

/** Whether Hark is the host's context engine. */
export function holdsEngineSlot(cfg: unknown): boolean {
  return lookup(cfg, "plugins", "slots", "contextEngine") === ENGINE_ID;
}

/** The settings of an agent: its own where it has them, else everybody's. */
export function memorySettings(cfg: HostConfig, agent: string, workspace: string | undefined): MemorySettings {
  const all = lookup(cfg, "memory", "search");
  const own = lookup(cfg, "agents", "entries", agent, "memory", "search");
  const setting = (...path: string[]): unknown => lookup(own, ...path) ?? lookup(all, ...path);
  const number = (v: unknown): number | undefined => (typeof v === "number" && Number.isFinite(v) ? v : undefined);
  const paths = [lookup(all, "extraPaths"), lookup(own, "extraPaths")].flatMap((v) => (Array.isArray(v) ? v : []));
  const citations = lookup(cfg, "memory", "citations");
  return {
    enabled: setting("enabled") !== false,
    workspace,
    extraPaths: paths.filter(isExtraPath),
    citations: citations === "on" || citations === "off" ? citations : "auto",
    maxResults: number(setting("query", "maxResults")),
    minScore: number(setting("query", "minScore")),
  };
}

/** Whether a reply to a session may name its sources: with "auto", where nobody else reads along. */
export function citesSources(mode: CitationsMode, sessionKey: string | undefined): boolean {
  if (mode !== "auto") return mode === "on";
  return !/:(group|channel)(:|$)/i.test(sessionKey ?? "");
}

function isExtraPath(v: unknown): v is ExtraPath {
  return typeof v === "string" ? v !== "" : typeof lookup(v, "path") === "string";
}

/** The value at the end of a path of keys; undefined where anything on the way is missing. */
export function lookup(value: unknown, ...keys: readonly string[]): unknown {
  let at = value;
  for (const key of keys) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}
