// What a model request is made of, and what has to be true of every one.

import { isInternal, isRecall, liveUser, textOf } from "./model.mjs";

/**
 * What was recalled for the live user message of a request; undefined where nothing was. It stands right
 * before that message; blocks of earlier turns may still stand before theirs.
 */
export function recallOf(request) {
  const at = liveUser(request.messages) - 1;
  const m = request.messages[at];
  return m && isRecall(m) ? { at, text: textOf(m.content) } : undefined;
}

export const systemOf = (request) => request.messages.filter((m) => m.role === "system").map((m) => textOf(m.content)).join("\n");

/** What is wrong with a request, as sentences; empty when nothing is. */
export function faults(request) {
  const out = [];
  const { messages } = request;
  const live = liveUser(messages);
  messages.forEach((m, i) => {
    if (!isRecall(m)) return;
    const next = messages[i + 1];
    if (i > live) out.push(`message ${i} is a recall after the live user message ${live}`);
    else if (next?.role !== "user" || isRecall(next) || isInternal(next)) out.push(`message ${i} is a recall that no user message follows`);
  });
  // Every call has one result before the conversation goes on, and there is no result without a call.
  let open = new Map();
  messages.forEach((m, i) => {
    if (m.role === "tool") {
      if (!open.has(m.tool_call_id)) out.push(`message ${i} is a result without a call`);
      open.delete(m.tool_call_id);
      if (/missing tool result|aborted/.test(textOf(m.content))) out.push(`message ${i} is a made-up result`);
      return;
    }
    if (isInternal(m)) return;
    if (open.size > 0) out.push(`message ${i} comes before the result of a call`);
    open = new Map((m.tool_calls ?? []).map((call) => [call.id, i]));
  });
  if (open.size > 0) out.push("the last call has no result");
  return out;
}

/**
 * How far a request is the same as the one before it, in bytes of its tools and messages as they are sent, and
 * whether everything that stood before the earlier one's recall (or live user message) is.
 */
export function prefix(before, now) {
  const bytes = (request) => Buffer.from([request.tools, ...request.messages].map((m) => JSON.stringify(m)).join("\n"));
  const a = bytes(before);
  const b = bytes(now);
  let same = 0;
  while (same < a.length && same < b.length && a[same] === b[same]) same++;
  const guarded = recallOf(before)?.at ?? liveUser(before.messages);
  const tools = JSON.stringify(before.tools) === JSON.stringify(now.tools);
  const differs = before.messages.slice(0, guarded).findIndex((m, i) => JSON.stringify(m) !== JSON.stringify(now.messages[i]));
  return { before: a.length, now: b.length, same, guarded, differs, tools };
}
