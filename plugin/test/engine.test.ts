import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { FakeDaemon, tempDir, usual } from "./fake-daemon.ts";
import { assistant, delegate, KEY, stage, turn, user } from "./play.ts";

const served = async (t: { after(f: () => unknown): void }, handler = usual): Promise<FakeDaemon> => {
  const daemon = await new FakeDaemon(handler).listen();
  t.after(() => daemon.close());
  return daemon;
};

test("the host accepts the engine for durable turns", () => {
  const { engine } = stage(tempDir());
  assert.equal(engine.info.id, "hark");
  assert.deepEqual(engine.info.transcriptSemantics, {
    currentTurnFence: "before-current-turn-entry-v1", turnAdvancementIdempotency: "atomic-idempotent-v1",
  });
  assert.equal(engine.info.ownsCompaction, false);
  assert.equal(engine.compact, delegate, "the host recognises its own compaction only by identity");
  assert.ok(engine.info.acceptedHostParams.includes("runtimeContext"));
  assert.equal((engine.info.hostRequirements as any)["agent-run"], undefined, "hosts without assemble still store");
});

test("assemble returns the host's own objects and the recall last", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir);
  const messages = [user("hello"), assistant("hi"), user("my dog is Biscuit", 3), assistant("noted", 4)];
  const before = JSON.stringify(messages);
  const r = await s.engine.assemble({
    sessionId: "s1", sessionKey: KEY, messages, tokenBudget: 1000, prompt: "what is my dog called?",
    availableTools: new Set(["read", "exec"]), citationsMode: "auto",
    runtimeContext: { config: { apiKey: "sk-secret" } },
  });
  assert.equal(r.messages.length, 5);
  messages.forEach((m, i) => assert.strictEqual(r.messages[i], m));
  assert.equal(r.messages[4]!.role, "custom");
  assert.equal(r.systemPromptAddition, "## Memory Recall\n\n## Hark");
  assert.equal(r.estimatedTokens, 42);
  assert.equal(JSON.stringify(messages), before, "the host's messages are untouched");
  const sent = daemon.calls("assemble")[0]!;
  assert.deepEqual(sent.body.availableTools, ["read", "exec"]);
  assert.equal(sent.body.prompt, "what is my dog called?");
  assert.equal(sent.body.memoryPrompt, "## Memory Recall");
  assert.equal(sent.headers["hark-protocol"], "1");
  assert.ok(Number(sent.headers["hark-deadline-ms"]) <= 20_000);
});

test("the memory section is asked for with the host's own values", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir);
  const availableTools = new Set(["memory_search"]);
  await s.engine.assemble({ sessionId: "s1", sessionKey: KEY, messages: [], availableTools, citationsMode: "off" });
  await s.engine.assemble({ sessionId: "s1", messages: [] });
  const [first, second] = s.memoryCalls as any[];
  assert.strictEqual(first.availableTools, availableTools);
  assert.equal(first.citationsMode, "off");
  assert.equal(first.agentSessionKey, KEY);
  assert.deepEqual(second, { availableTools: new Set() });
});

test("a memory section that throws costs nothing but itself", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir, {}, { memoryPrompt: () => { throw new Error("prepared memory prompt section does not match"); } });
  const r = await s.engine.assemble({ sessionId: "s1", sessionKey: KEY, messages: [user("hello")] });
  assert.equal(r.systemPromptAddition, "## Hark");
  assert.ok(!("memoryPrompt" in daemon.calls("assemble")[0]!.body));
});

test("neither runtimeContext nor configuration leaves the process, by any call", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir, {}, {
    transcript: async () => ({ kind: "page", cursor: "c1", hasMore: false, entries: [{ entryId: "e", seq: 1, role: "user", createdAt: "2026-11-30T17:39:28Z", message: user("hi") }] }),
  });
  const runtimeContext = { config: { key: "sk-secret" }, workspaceDir: "/ws", rewriteTranscriptEntries: () => undefined };
  const p: any = { sessionId: "s1", sessionKey: KEY, sessionFile: KEY, runtimeContext, abortSignal: new AbortController().signal, config: { key: "sk-secret" } };
  await s.engine.bootstrap(p);
  await s.engine.maintain(p);
  await s.engine.ingest({ ...p, message: user("a") });
  await s.engine.ingestBatch({ ...p, messages: [user("a"), assistant("b")] });
  await s.engine.afterTurn({ ...p, messages: [user("a")], prePromptMessageCount: 0 });
  await s.engine.commitTurn({ ...turn("k1", [user("a"), assistant("b")]), runtimeContext });
  await s.engine.assemble({ ...p, messages: [user("a")], prompt: "b" });
  const spawn = await s.engine.prepareSubagentSpawn({ parentSessionKey: KEY, childSessionKey: "agent:main:subagent:1", contextMode: "isolated", runtimeContext } as any);
  await spawn!.rollback();
  await s.engine.onSubagentEnded({ childSessionKey: "agent:main:subagent:1", reason: "completed", agentDir: "/a" });
  const methods = new Set(daemon.calls().map((c) => c.path.split("?")[0]!.split("/").at(-1)));
  assert.deepEqual([...methods].sort(), ["afterTurn", "assemble", "bootstrap", "commitTurn", "cursor", "ingest", "ingestBatch", "maintain", "onSubagentEnded", "prepareSubagentSpawn", "rollbackSubagentSpawn"]);
  for (const call of daemon.calls()) {
    assert.ok(!/sk-secret|runtimeContext|abortSignal|"config"/.test(call.raw), call.path);
  }
});

test("an answer that does not fit the messages is not used", async (t) => {
  const answers = [
    { kept: [[0, 9]], insert: [], estimatedTokens: 1 },
    { kept: [[1, 2], [0, 1]], insert: [], estimatedTokens: 1 },
    { kept: [[0, 2]], insert: [{ position: 7, message: { role: "custom" } }], estimatedTokens: 1 },
    { kept: [[0, 2]], insert: [{ position: 1, message: "text" }], estimatedTokens: 1 },
    { kept: null, insert: [] },
    {},
  ];
  for (const body of answers) {
    const daemon = await served(t, () => ({ body }));
    const messages = [user("a"), assistant("b")];
    const r = await stage(daemon.dataDir).engine.assemble({ sessionId: "s1", sessionKey: KEY, messages });
    assert.equal(r.messages.length, 2);
    assert.strictEqual(r.messages[0], messages[0]);
    assert.equal(r.systemPromptAddition, "## Memory Recall");
    assert.ok(Number.isFinite(r.estimatedTokens));
  }
});

test("a window and a shortened message keep the other objects", async (t) => {
  const daemon = await served(t, () => ({
    body: { kept: [[2, 3], [4, 5]], insert: [{ position: 1, message: { role: "toolResult", content: "short" } }, { position: 3, message: { role: "custom", customType: "hark-recall", content: "r" } }], estimatedTokens: 5 },
  }));
  const messages = [0, 1, 2, 3, 4].map((i) => user("m" + i));
  const call = { sessionId: "s1", sessionKey: KEY, messages };
  const r = await stage(daemon.dataDir).engine.assemble(call);
  assert.deepEqual(r.messages.map((m) => m.content), ["m2", "short", "m4", "r"]);
  assert.strictEqual(r.messages[2], messages[4]);
  const off = await stage(daemon.dataDir, { recall: { enabled: false } }).engine.assemble(call);
  assert.deepEqual(off.messages.map((m) => m.content), ["m2", "short", "m4"], "recall.enabled false leaves the window alone");
});

test("the host's silent runs are neither stored nor given anything", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir);
  const key = "agent:main:internal-session-effects:19fdc8a3-9305";
  const p: any = { sessionId: "x", sessionKey: key, sessionFile: key };
  await s.engine.bootstrap(p);
  await s.engine.maintain(p);
  await s.engine.ingest({ ...p, message: user("a") });
  await s.engine.afterTurn({ ...p, messages: [user("a")], prePromptMessageCount: 0 });
  assert.deepEqual(await s.engine.commitTurn(turn("k", [user("a")], key)), { status: "committed" });
  const messages = [user("a")];
  const r = await s.engine.assemble({ ...p, messages });
  assert.strictEqual(r.messages[0], messages[0]);
  assert.equal(r.systemPromptAddition, "## Memory Recall");
  assert.equal(daemon.seen.length, 0);
});

test("each agent's calls go to its own store", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir);
  await s.engine.assemble({ sessionId: "s", sessionKey: "agent:Work:main", messages: [] });
  await s.engine.maintain({ sessionId: "s", sessionKey: "cron:job", sessionTarget: { agentId: "home" } });
  await s.engine.maintain({ sessionId: "s" });
  assert.deepEqual(daemon.calls().map((c) => c.path.split("/")[3]), ["work", "home", "main"]);
});

test("commitTurn passes the daemon's verdict on and throws while a turn is not stored", async (t) => {
  let answer: any = { body: { status: "committed" } };
  const daemon = await served(t, () => answer);
  const s = stage(daemon.dataDir);
  const p = turn("k1", [user("my bike is green"), assistant("noted")]);
  assert.deepEqual(await s.engine.commitTurn(p), { status: "committed" });
  answer = { body: { status: "duplicate" } };
  assert.deepEqual(await s.engine.commitTurn(p), { status: "duplicate" });
  for (const code of ["internal", "disk-full", "locked", "busy", "newer-schema"]) {
    answer = { status: 500, body: { error: { code, message: "no" } } };
    await assert.rejects(s.engine.commitTurn(p), { code });
  }
  for (const code of ["conflict", "bad-request", "too-large"]) {
    answer = { status: 409, body: { error: { code, message: "no" } } };
    assert.deepEqual(await s.engine.commitTurn(p), { status: "duplicate" }, "a refusal must not block the session for ever");
  }
});

test("storing on hosts without commitTurn never throws", async (t) => {
  const daemon = await served(t, () => ({ status: 500, body: { error: { code: "internal", message: "broken" } } }));
  const s = stage(daemon.dataDir);
  assert.deepEqual(await s.engine.ingest({ sessionId: "s1", message: user("a") }), { ingested: false });
  assert.deepEqual(await s.engine.ingestBatch({ sessionId: "s1", messages: [user("a")] }), { ingestedCount: 0 });
  await s.engine.afterTurn({ sessionId: "s1", messages: [user("a")], prePromptMessageCount: 0 });
  assert.equal(await s.engine.prepareSubagentSpawn({ parentSessionKey: KEY, childSessionKey: "agent:main:subagent:1" }), undefined);
  await s.engine.onSubagentEnded({ childSessionKey: "agent:main:subagent:1", reason: "deleted" });
  const r = await s.engine.maintain({ sessionId: "s1" });
  assert.equal(r.changed, false);
});

test("a compaction is told once, before the turn that follows it", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir);
  const summary = (at: number): any => ({ role: "compactionSummary", summary: "earlier", tokensBefore: 9, timestamp: at });
  const ask = (messages: any[]): Promise<unknown> => s.another().assemble({ sessionId: "s1", sessionKey: KEY, messages });
  await ask([user("a"), assistant("b")]);
  await ask([user("a"), assistant("b")]);
  assert.equal(daemon.calls("compacted").length, 0);
  await ask([summary(1), user("c")]);
  await ask([summary(1), user("c")]);
  assert.equal(daemon.calls("compacted").length, 1);
  await ask([summary(2), user("d")]);
  assert.equal(daemon.calls("compacted").length, 2);
  assert.deepEqual(daemon.calls("compacted")[0]!.body, { sessionId: "s1", sessionKey: KEY });
  await stage(daemon.dataDir).engine.assemble({ sessionId: "s1", sessionKey: KEY, messages: [summary(2)] });
  assert.equal(daemon.calls("compacted").length, 2, "a fresh process has seen no compaction happen");
});

test("a turn without Hark keeps the session's system prompt as it was", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir);
  const call = { sessionId: "s1", sessionKey: KEY, messages: [user("a")] };
  const good = await s.engine.assemble(call);
  daemon.handler = () => ({ status: 500, body: { error: { code: "internal", message: "broken" } } });
  const bad = await s.another().assemble(call);
  assert.equal(bad.systemPromptAddition, good.systemPromptAddition);
  assert.deepEqual(bad.messages, call.messages);
});

test("what was last served and stored of each agent is noted for hark doctor", async (t) => {
  const daemon = await served(t);
  const s = stage(daemon.dataDir);
  const note = (): any => JSON.parse(fs.readFileSync(path.join(daemon.dataDir, "host", "main.json"), "utf8"));
  await s.engine.assemble({ sessionId: "s1", sessionKey: KEY, messages: [] });
  assert.ok(Date.parse(note().served) > 0 && !note().committed);
  await s.engine.commitTurn(turn("k", [user("a secret word")]));
  assert.ok(Date.parse(note().committed) > 0);
  daemon.handler = () => ({ status: 507, body: { error: { code: "disk-full", message: "no space left" } } });
  await assert.rejects(s.engine.commitTurn(turn("k2", [user("a secret word")])));
  assert.match(note().failed.what, /no space left/);
  assert.ok(note().served && !JSON.stringify(note()).includes("secret word"));
});
