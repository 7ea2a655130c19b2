/** The plugin's options: what the manifest's schema describes, with defaults filled in. */

import os from "node:os";
import path from "node:path";

export interface Config {
  /** The hark program; undefined looks beside the plugin and on PATH. */
  readonly binary: string | undefined;
  /** The state directory of the daemon. */
  readonly dataDir: string;
  /** Limit of one assemble, in milliseconds. A turn waits no longer for Hark. */
  readonly deadlineMs: number;
  /** Limit of storing one turn, in milliseconds. */
  readonly commitDeadlineMs: number;
  /** Limit per turn of reading what Hark missed of a session, in milliseconds; 0 turns it off. */
  readonly catchUpMs: number;
  /** Limit of one call of a memory tool, in milliseconds. */
  readonly toolDeadlineMs: number;
  /** Whether the host loads memory-core for its dreaming while Hark holds the memory slot. */
  readonly dreaming: boolean;
  /** Whether a recalled block is put into the model's context. Storing goes on either way. */
  readonly recall: boolean;
  /** How long the daemon stays without requests, as `hark serve --idle-exit` takes it. */
  readonly idleExit: string;
  /** What the daemon is told through its environment, by variable. */
  readonly settings: Readonly<Record<string, string>>;
}

type Env = Readonly<Record<string, string | undefined>>;

/** The options that are handed to the daemon, and the variable each one becomes. */
const daemonSettings: readonly (readonly [option: string, variable: string])[] = [
  ["recall.maxTokens", "HARK_RECALL_MAX_TOKENS"],
  ["recall.policy", "HARK_RECALL_POLICY"],
  ["embedder.provider", "HARK_EMBEDDER_PROVIDER"],
  ["embedder.model", "HARK_EMBEDDER_MODEL"],
  ["embedder.baseUrl", "HARK_EMBEDDER_BASE_URL"],
  ["timezone", "HARK_TIMEZONE"],
  ["configFile", "HARK_CONFIG"],
];

/**
 * Reads the options as the host validated them. A value of the wrong type, which only a host that
 * does not validate lets through, is taken as absent.
 */
export function readConfig(raw: unknown, env: Env): Config {
  const text = (key: string): string | undefined => {
    const v = lookup(raw, key);
    return typeof v === "string" && v.trim() !== "" ? v : undefined;
  };
  const number = (key: string, fallback: number, least: number, most: number): number => {
    const v = lookup(raw, key);
    return typeof v === "number" && Number.isFinite(v) ? Math.min(most, Math.max(least, v)) : fallback;
  };
  const settings: Record<string, string> = {};
  for (const [option, variable] of daemonSettings) {
    const v = lookup(raw, option);
    if ((typeof v === "string" && v !== "") || typeof v === "number") settings[variable] = String(v);
  }
  const home = (p: string): string => (p === "~" || p.startsWith("~/") ? path.join(homeOf(env), p.slice(1)) : p);
  const binary = text("binary");
  return {
    binary: binary === undefined ? undefined : home(binary),
    dataDir: path.resolve(home(text("dataDir") ?? defaultDataDir(env))),
    deadlineMs: number("deadlineMs", 1500, 50, 60_000),
    commitDeadlineMs: number("commitDeadlineMs", 5000, 500, 120_000),
    catchUpMs: number("catchUpMs", 2000, 0, 60_000),
    toolDeadlineMs: number("toolDeadlineMs", 10_000, 500, 60_000),
    dreaming: lookup(raw, "dreaming.enabled") !== false,
    recall: lookup(raw, "recall.enabled") !== false,
    idleExit: text("idleExit") ?? "15m",
    settings,
  };
}

/**
 * Where the daemon's state is when the option does not say: `HARK_DATA`; inside the host's state
 * directory when that is not the usual one, so that two hosts never share a memory by accident; else
 * the folder the hark program uses by itself, so that its commands see what the agents see.
 */
export function defaultDataDir(env: Env): string {
  if (env.HARK_DATA) return env.HARK_DATA;
  const home = homeOf(env);
  const state = env.OPENCLAW_STATE_DIR;
  if (state && path.resolve(state) !== path.join(home, ".openclaw")) return path.join(path.resolve(state), "hark");
  if (env.XDG_DATA_HOME && path.isAbsolute(env.XDG_DATA_HOME)) return path.join(env.XDG_DATA_HOME, "hark");
  switch (process.platform) {
    case "win32":
      return path.join(env.LOCALAPPDATA ?? path.join(home, "AppData", "Local"), "hark");
    case "darwin":
      return path.join(home, "Library", "Application Support", "hark");
    default:
      return path.join(home, ".local", "share", "hark");
  }
}

function homeOf(env: Env): string {
  return env.HOME ?? env.USERPROFILE ?? os.homedir();
}

/** The value under a dotted key; undefined where anything on the way is missing. */
function lookup(raw: unknown, key: string): unknown {
  let at = raw;
  for (const part of key.split(".")) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Record<string, unknown>)[part];
  }
  return at;
}
