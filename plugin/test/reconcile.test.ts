import assert from "node:assert/strict";
import { test } from "node:test";
import type { TranscriptDelta, TranscriptQuery } from "../src/host.ts";
import { FakeDaemon, usual, type Seen } from "./fake-daemon.ts";
import { KEY, stage, user } from "./play.ts";

const entry = (n: number): any => ({ entryId: "e" + n, parentId: n ? "e" + (n - 1) : null, seq: n, role: "user", createdAt: "2026-11-30T17:39:28.247Z", message: user("m" + n, n) });
const bootstrapping: any = { sessionId: "s1", sessionKey: KEY, sessionFile: KEY };

/** A host's transcript of n messages, and a daemon that keeps the cursor it was given. */
async function scene(t: any, n: number, pageSize: number) {
  const state = { cursor: "", stored: [] as string[] };
  const daemon = await new FakeDaemon((seen: Seen) => {
    if (seen.path.includes("/cursor?")) return { body: { cursor: state.cursor } };
    if (seen.path.endsWith("/bootstrap")) {
      for (const e of seen.body.history ?? []) state.stored.push(e.entryId);
      if (seen.body.cursor) state.cursor = seen.body.cursor;
    }
    return usual(seen);
  }).listen();
  t.after(() => daemon.close());
  const queries: TranscriptQuery[] = [];
  const transcript = async (q: TranscriptQuery): Promise<TranscriptDelta> => {
    queries.push(q);
    const from = q.cursor ? Number(q.cursor) : 0;
    const to = Math.min(n, from + pageSize);
    return { kind: "page", cursor: String(to), hasMore: to < n, entries: Array.from({ length: to - from }, (_, i) => entry(from + i)) };
  };
  return { state, daemon, queries, transcript };
}

test("everything the transcript has is sent once, page by page", async (t) => {
  const c = await scene(t, 10, 4);
  const s = stage(c.daemon.dataDir, {}, { transcript: c.transcript });
  const r = await s.engine.bootstrap(bootstrapping);
  assert.deepEqual(r, { bootstrapped: true, importedMessages: 10 });
  assert.deepEqual(c.state.stored, Array.from({ length: 10 }, (_, i) => "e" + i));
  assert.equal(c.queries[0]!.agentId, "main");
  assert.ok(!("cursor" in c.queries[0]!), "no cursor means from the start");
  const body = c.daemon.calls("bootstrap")[0]!.body;
  assert.equal(body.history[0].message.content, "m0");
  assert.ok(!("parentId" in body.history[0]));
  assert.equal(body.sessionKey, KEY);
  await s.another().bootstrap(bootstrapping);
  assert.equal(c.state.stored.length, 10, "nothing is sent again");
  assert.equal(c.daemon.calls("bootstrap").at(-1)!.body.history, undefined, "the call itself still arrives");
});

test("time runs out: the next turn goes on where it stopped", async (t) => {
  const c = await scene(t, 9, 3);
  let slow = true;
  const s = stage(c.daemon.dataDir, { catchUpMs: 1 }, {
    transcript: async (q) => {
      if (slow) await new Promise((r) => setTimeout(r, 600));
      return await c.transcript(q);
    },
  });
  const first = await s.engine.bootstrap(bootstrapping);
  assert.equal(first.bootstrapped, true);
  assert.match(first.reason!, /next turn goes on/);
  assert.deepEqual(c.state.stored, ["e0", "e1", "e2"]);
  slow = false;
  for (let i = 0; i < 5; i++) await s.another().bootstrap(bootstrapping);
  assert.deepEqual(c.state.stored, Array.from({ length: 9 }, (_, i) => "e" + i));
});

test("a transcript that was rewritten is read again from its start", async (t) => {
  const c = await scene(t, 2, 10);
  c.state.cursor = "of another generation";
  let asked = 0;
  const s = stage(c.daemon.dataDir, {}, {
    transcript: async (q) => (asked++ === 0 ? { kind: "reset", cursor: "0", reason: "generation_mismatch" } : await c.transcript(q)),
  });
  assert.equal((await s.engine.bootstrap(bootstrapping)).importedMessages, 2);
  assert.equal(c.state.cursor, "2");
  const forever = stage(c.daemon.dataDir, {}, { transcript: async () => ({ kind: "reset", cursor: "0", reason: "anchor_moved" }) });
  assert.match((await forever.engine.bootstrap(bootstrapping)).reason!, /anchor_moved/);
});

test("a transcript that is missing, not ready, fenced off or broken stops nothing", async (t) => {
  const c = await scene(t, 0, 1);
  class SessionTranscriptReadFenceError extends Error {}
  const cases: [() => Promise<TranscriptDelta>, RegExp | undefined][] = [
    [async () => ({ kind: "missing" }), undefined],
    [async () => ({ kind: "unavailable", reason: "projection_rebuilding" }), /projection_rebuilding/],
    [async () => { throw new SessionTranscriptReadFenceError("crossed"); }, undefined],
    [async () => { throw new Error("Cannot find module"); }, /Cannot find module/],
    [() => new Promise(() => undefined), /the next turn goes on/],
  ];
  for (const [transcript, reason] of cases) {
    const r = await stage(c.daemon.dataDir, {}, { transcript }).engine.bootstrap(bootstrapping);
    assert.equal(r.bootstrapped, true);
    if (reason) assert.match(r.reason!, reason);
    else assert.equal(r.reason, undefined);
  }
  assert.equal(c.daemon.calls("bootstrap").length, cases.length);
});

test("one message larger than a page is asked for at its size, and skipped over past the host's limit", async (t) => {
  const c = await scene(t, 0, 1);
  const sizes: number[] = [];
  const big = (required: number) => async (q: TranscriptQuery): Promise<TranscriptDelta> => {
    sizes.push(q.maxBytes!);
    if (q.maxBytes! < required) return { kind: "page", cursor: "0", hasMore: true, requiredBytes: required, entries: [] };
    return { kind: "page", cursor: "1", hasMore: false, entries: [entry(0)] };
  };
  const r = await stage(c.daemon.dataDir, {}, { transcript: big(20 << 20) }).engine.bootstrap(bootstrapping);
  assert.equal(r.importedMessages, 1);
  assert.ok(sizes[1]! > 20 << 20);
  const never = await stage(c.daemon.dataDir, {}, { transcript: big(100 << 20) }).engine.bootstrap(bootstrapping);
  assert.match(never.reason!, /too large/);
});

test("a page is not followed by another when the daemon did not store it", async (t) => {
  const c = await scene(t, 10, 2);
  const s = stage(c.daemon.dataDir, {}, { transcript: c.transcript });
  c.daemon.handler = (seen) => (seen.path.includes("/cursor?") ? { body: { cursor: "" } } : { status: 507, body: { error: { code: "disk-full", message: "no space" } } });
  const r = await s.engine.bootstrap(bootstrapping);
  assert.equal(r.bootstrapped, false);
  assert.equal(c.queries.length, 1);
});

test("a page that takes longer than what is left is put off, without losing those before it", async (t) => {
  const c = await scene(t, 9, 3);
  let pages = 0;
  const usually = c.daemon.handler;
  c.daemon.handler = (seen) => (seen.body?.history && ++pages === 2 ? "hang" : usually(seen));
  const s = stage(c.daemon.dataDir, { catchUpMs: 600 }, { transcript: c.transcript });
  const first = await s.engine.bootstrap(bootstrapping);
  assert.equal(first.bootstrapped, true);
  assert.equal(first.importedMessages, 3);
  assert.match(first.reason!, /next turn goes on/);
  assert.equal((await s.another().bootstrap(bootstrapping)).importedMessages, 6);
  assert.equal(c.state.stored.length, 9);
});
