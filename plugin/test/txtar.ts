/** Reads the wire transcripts of engine/wire/testdata; durable-turn.txtar there documents the format. */

import assert from "node:assert/strict";

export interface Message {
  head: string; // "POST /v1/…" or "200"
  headers: Record<string, string>;
  body: string;
}

export interface Step {
  number: string;
  request: Message;
  response: Message;
}

export function parse(text: string): { server: any; steps: Step[] } {
  const sections: { name: string; data: string }[] = [];
  for (const line of text.split(/(?<=\n)/)) {
    const name = /^-- (.+) --\n?$/.exec(line)?.[1];
    if (name !== undefined) sections.push({ name, data: "" });
    else if (sections.length > 0) sections.at(-1)!.data += line;
  }
  const steps: Step[] = [];
  let server: any = {};
  for (const [i, s] of sections.entries()) {
    if (s.name === "server") server = JSON.parse(s.data);
    const number = /^(.+) request$/.exec(s.name)?.[1];
    if (number === undefined) continue;
    const answer = sections[i + 1];
    assert.equal(answer?.name, number + " response");
    steps.push({ number, request: message(s.data), response: message(answer!.data) });
  }
  return { server, steps };
}

function message(data: string): Message {
  const at = data.indexOf("\n\n");
  const [head = "", ...lines] = (at < 0 ? data.trimEnd() : data.slice(0, at)).split("\n");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return { head, headers, body: at < 0 ? "" : data.slice(at + 2).replace(/\n$/, "") };
}

/** A body to send: "<any X>" becomes X. */
export function filled(value: any): any {
  if (typeof value === "string") {
    const any = /^<any(?: (.*))?>$/s.exec(value);
    return any ? JSON.parse(any[1] ?? "null") : value;
  }
  if (Array.isArray(value)) return value.map(filled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, filled(v)]));
}

/** Compares with a body of a transcript, where "<any>" fits everything. */
export function fits(actual: any, wanted: any, at = "body"): void {
  if (typeof wanted === "string" && /^<any( .*)?>$/s.test(wanted)) return;
  if (Array.isArray(wanted) && Array.isArray(actual)) {
    assert.equal(actual.length, wanted.length, at);
    return wanted.forEach((w, i) => fits(actual[i], w, `${at}[${i}]`));
  }
  if (typeof wanted === "object" && wanted !== null && typeof actual === "object" && actual !== null) {
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(wanted).sort(), at);
    for (const key of Object.keys(wanted)) fits(actual[key], wanted[key], `${at}.${key}`);
    return;
  }
  assert.deepEqual(actual, wanted, at);
}
