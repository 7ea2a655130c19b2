/** The silent turn before a compaction, in which the agent writes down what should last. */

import type { FlushPlan, HostConfig } from "./hostmemory.ts";
import { lookup } from "./slot.ts";

// The host's own defaults, so that switching the slot changes nothing about when the turn comes.
const SOFT_TOKENS = 4000;
const FORCE_BYTES = 2 * 1024 * 1024;
const RESERVE_TOKENS = 20_000;

/** What the host takes for "nothing to say to the user". */
const SILENT = "NO_REPLY";

export function flushPlan(p: { cfg?: HostConfig; nowMs?: number; contextWindowTokens?: number }): FlushPlan | null {
  const set = (key: string): unknown => lookup(p.cfg, "agents", "defaults", "compaction", "memoryFlush", key);
  if (set("enabled") === false) return null;
  const window = p.contextWindowTokens !== undefined && p.contextWindowTokens > 0 ? Math.floor(p.contextWindowTokens) : undefined;
  const reserve = window === undefined ? RESERVE_TOKENS : Math.min(RESERVE_TOKENS, Math.floor(window / 4));
  const soft = whole(set("softThresholdTokens")) ?? SOFT_TOKENS;
  const model = set("model");
  const now = new Date(p.nowMs ?? Date.now());
  const day = dayIn(now, lookup(p.cfg, "agents", "defaults", "userTimezone"));
  const file = `memory/${day}.md`;
  const rules = [
    `Write only to ${file}; create the folder if it is missing, and add to the end of the file if it exists. Use no other file name.`,
    "Leave MEMORY.md, USER.md, DREAMS.md, SOUL.md, AGENTS.md and the other reference files as they are.",
    `If nothing is worth keeping, or nothing has to be said to the user, reply with ${SILENT}.`,
  ].join(" ");
  return {
    softThresholdTokens: window === undefined ? soft : Math.max(0, Math.min(soft, Math.floor((window - reserve) / 2))),
    forceFlushTranscriptBytes: bytes(set("forceFlushTranscriptBytes")) ?? FORCE_BYTES,
    reserveTokensFloor: reserve,
    ...(typeof model === "string" && model.trim() !== "" ? { model: model.trim() } : {}),
    prompt: `The conversation is about to be compacted. Write down what should still be known afterwards: facts, decisions, preferences, open tasks. ${rules}\nCurrent time: ${now.toISOString().slice(0, 16)}Z, day ${day}`,
    systemPrompt: `This is a silent turn before a compaction, for keeping notes. ${rules}`,
    relativePath: file,
  };
}

/** The day in a time zone, as YYYY-MM-DD; in this machine's where the zone is unset or unknown. */
function dayIn(now: Date, zone: unknown): string {
  const format = (timeZone?: string): string =>
    new Intl.DateTimeFormat("sv-SE", { ...(timeZone ? { timeZone } : {}), year: "numeric", month: "2-digit", day: "2-digit" }).format(now);
  try {
    return format(typeof zone === "string" ? zone : undefined);
  } catch {
    return format();
  }
}

function whole(v: unknown): number | undefined {
  return typeof v === "number" && Number.isFinite(v) && v >= 0 ? Math.floor(v) : undefined;
}

/** A size as the host's configuration has it: a number of bytes, or text like "2mb". */
function bytes(v: unknown): number | undefined {
  if (typeof v !== "string") return whole(v);
  const at = /^(\d+(?:\.\d+)?)\s*(b|kb?|mb?|gb?)?$/i.exec(v.trim());
  if (!at) return undefined;
  const power = ["b", "k", "m", "g"].indexOf((at[2] ?? "b")[0]!.toLowerCase());
  return Math.floor(Number(at[1]) * 1024 ** power);
}
