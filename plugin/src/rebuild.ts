/** From the daemon's answer back to messages: the host's own objects, and the few that are new. */

import type { AssembleAnswer } from "./client.ts";
import type { AgentMessage } from "./host.ts";

/** The custom type of the message that carries what was recalled. */
export const RECALL_TYPE = "hark-recall";

/**
 * Puts the list together that an answer describes. Kept messages are the elements of `messages`
 * themselves. Throws when the answer does not fit the messages; nothing of it is used then.
 */
export function rebuild(messages: readonly AgentMessage[], answer: AssembleAnswer): AgentMessage[] {
  if (!Array.isArray(answer.kept) || !Array.isArray(answer.insert)) throw new Error("the answer names no messages");
  const kept: AgentMessage[] = [];
  let next = 0;
  for (const range of answer.kept) {
    const [from, to] = range;
    if (!Number.isInteger(from) || !Number.isInteger(to) || from < next || to < from || to > messages.length) {
      throw new Error(`the answer keeps messages ${from} to ${to} of ${messages.length}`);
    }
    for (let i = from; i < to; i++) kept.push(messages[i]!);
    next = to;
  }
  const out: AgentMessage[] = [];
  let taken = 0;
  for (const { position, message } of answer.insert) {
    if (typeof message !== "object" || message === null || typeof message.role !== "string") {
      throw new Error("the answer inserts something that is no message");
    }
    while (out.length < position && taken < kept.length) out.push(kept[taken++]!);
    if (out.length !== position) throw new Error(`the answer inserts at ${position}, past the end or out of order`);
    out.push(message);
  }
  while (taken < kept.length) out.push(kept[taken++]!);
  return out;
}

/** The answer without what was recalled, for agents that have recall turned off. */
export function withoutRecall(answer: AssembleAnswer): AssembleAnswer {
  let gone = 0;
  const insert: AssembleAnswer["insert"][number][] = [];
  for (const { position, message } of answer.insert) {
    if (message.customType === RECALL_TYPE) gone++;
    else insert.push({ position: position - gone, message });
  }
  return { ...answer, insert };
}

/** The host's own estimate of a history in tokens, for when the daemon gave none. */
export function estimateTokens(messages: readonly AgentMessage[]): number {
  let chars = 0;
  let images = 0;
  const block = (part: unknown): void => {
    if (typeof part === "string") chars += part.length;
    if (typeof part !== "object" || part === null) return;
    const p = part as Record<string, unknown>;
    if (p.type === "image") images++;
    if (typeof p.text === "string") chars += p.text.length;
    if (typeof p.thinking === "string") chars += p.thinking.length;
    if (p.type === "toolCall") chars += String(p.name ?? "").length + sizeOf(p.arguments ?? {});
  };
  for (const m of messages) {
    const content = m?.content ?? m?.summary ?? m?.output;
    for (const part of Array.isArray(content) ? (content as unknown[]) : [content]) block(part);
  }
  return Math.ceil(chars / 4) + images * 2000;
}

/** The length of a value as JSON; 0 for one that has no JSON form, as a cycle has none. */
function sizeOf(value: unknown): number {
  try {
    return (JSON.stringify(value) ?? "").length;
  } catch {
    return 0;
  }
}
