/** What the tools answer: JSON of a bounded size, in the host's shapes. */

import type { MemoryHit, ReadResult, ToolResult } from "./hostmemory.ts";

/** Most tokens of a tool's result; a fourth of a character count, as the host estimates. */
export const MAX_TOKENS = 3000;

const MAX_CHARS = MAX_TOKENS * 4;
const MAX_SNIPPET = 1600; // characters: four hundred tokens, a whole chunk of a memory file

export function jsonResult(value: object): ToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value, null, 1) }], details: value };
}

/** The hits from the best on, until the result is full, and how many had no room. */
export function fitting<T extends { snippet: string }>(hits: readonly T[]): { hits: T[]; left: number } {
  const out: T[] = [];
  let chars = 0;
  for (const hit of hits) {
    const one = { ...hit, snippet: cut(hit.snippet, MAX_SNIPPET) };
    chars += JSON.stringify(one).length + 8;
    if (out.length > 0 && chars > MAX_CHARS) break;
    out.push(one);
  }
  return { hits: out, left: hits.length - out.length };
}

/** A hit as the host's own tool shows it: with its corpus and, where wanted, its source below the text. */
export function presented(hit: MemoryHit, cite: boolean): MemoryHit & { corpus: string } {
  const { citation: _, ...rest } = hit;
  if (!cite) return { ...rest, corpus: hit.source };
  const citation = hit.citation || (hit.startLine === hit.endLine ? `${hit.path}#L${hit.startLine}` : `${hit.path}#L${hit.startLine}-L${hit.endLine}`);
  return { ...rest, corpus: hit.source, citation, snippet: `${cut(hit.snippet, MAX_SNIPPET).trimEnd()}\n\nSource: ${citation}` };
}

/** A read within the limit. What was cut is said, with the line to go on at where there is one. */
export function fittingText(read: ReadResult): ReadResult {
  if (read.status !== "ok" || read.text.length <= MAX_CHARS) return read;
  const whole = read.text.slice(0, MAX_CHARS);
  const end = whole.lastIndexOf("\n");
  const { nextFrom: _, ...rest } = read;
  if (end <= 0) return { ...rest, text: cut(read.text, MAX_CHARS), truncated: true, ...(read.nextFrom ? { nextFrom: read.nextFrom } : {}) };
  const text = whole.slice(0, end);
  const lines = text.split("\n").length;
  return { ...rest, text, lines, truncated: true, nextFrom: (read.from ?? 1) + lines };
}

/** Who said a message, in one word or two. */
export function speakerOf(hit: MemoryHit): string {
  return hit.speaker || (hit.role === "assistant" ? "the agent" : hit.role || "somebody");
}

/** A message hit's title where it has none: who and when. */
export function describe(hit: MemoryHit): string {
  return hit.title || [speakerOf(hit), hit.date?.slice(0, 10)].filter(Boolean).join(", ");
}

/** A text of at most `most` characters, never half a character. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = /[\uD800-\uDBFF]/.test(text[most - 2] ?? "") ? most - 2 : most - 1;
  return text.slice(0, end) + "…";
}
