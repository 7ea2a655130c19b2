/** What a call is about, and what of it may leave this process. */

import type { EntryAnchor, FactoryContext, SessionTarget } from "./host.ts";

interface Addressed {
  readonly sessionKey?: string;
  readonly sessionTarget?: SessionTarget;
  readonly admission?: EntryAnchor;
}

/** The session key of a call; undefined where the host gives none. */
export function keyOf(p: Addressed): string | undefined {
  return p.sessionKey || p.sessionTarget?.sessionKey || undefined;
}

/** The agent a call is for: what the call says, else what its key says, else whose instance this is. */
export function agentOf(p: Addressed, ctx: FactoryContext): string {
  const named = p.sessionTarget?.agentId || p.admission?.agentId;
  if (named) return named;
  const fromKey = /^agent:([^:]+):/i.exec(keyOf(p) ?? "")?.[1];
  if (fromKey) return fromKey.toLowerCase();
  const fromDir = /[\\/]agents[\\/]([^\\/]+)[\\/]agent[\\/]?$/.exec(ctx.agentDir ?? "")?.[1];
  return fromDir ?? "main";
}

/** Whether a call belongs to a silent run of the host's own, which is nobody's conversation. */
export function isInternal(p: Addressed): boolean {
  return /(^|:)internal-session-effects(:|$)/i.test(keyOf(p) ?? "");
}

/**
 * The parameters without what stays here: the runtime context with the host's configuration and keys,
 * and the abort signal. Everything else is the host's own value.
 */
export function outgoing<P extends object>(p: P): Partial<P> {
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(p)) {
    if (name === "runtimeContext" || name === "abortSignal" || name === "config") continue;
    if (value !== undefined && typeof value !== "function") out[name] = value;
  }
  return out as Partial<P>;
}
