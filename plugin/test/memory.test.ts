// The memory slot: the search manager, the capability and the corpus supplement, against a daemon whose answers the test chooses.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { AgentMemory } from "../src/agentmemory.ts";
import { memoryCapability } from "../src/capability.ts";
import { flushPlan } from "../src/flush.ts";
import { dreamsBeside } from "../src/slot.ts";
import { corpusSupplement } from "../src/supplement.ts";
import { FakeDaemon, tempDir, usual } from "./fake-daemon.ts";
import { hit, memoryAnswers, memoryStage, slotConfig } from "./memory-play.ts";
import { KEY, user } from "./play.ts";

const GROUP = "agent:main:telegram:group:7";

const served = async (t: { after(f: () => unknown): void }, handler = memoryAnswers()): Promise<FakeDaemon> => {
  const daemon = await new FakeDaemon(handler).listen();
  t.after(() => daemon.close());
  return daemon;
};

test("the search manager asks the daemon in the host's words and answers in the host's shapes", async (t) => {
  const daemon = await served(t);
  const { deps } = memoryStage(daemon.dataDir);
  const { manager } = await memoryCapability(() => deps).runtime.getMemorySearchManager({ cfg: slotConfig(), agentId: "main" });
  assert.ok(manager);
  const debug: unknown[] = [];
  const hits = await manager.search("launch code", { maxResults: 3, minScore: 0.2, sessionKey: KEY, sources: ["memory"], lexicalOnly: true, onDebug: (d) => debug.push(d) });
  assert.deepEqual(hits.map((h) => [h.path, h.startLine, h.endLine, h.source]), [["MEMORY.md", 3, 5, "memory"], ["sessions/s1/m7.md", 1, 1, "sessions"]]);
  assert.deepEqual(debug, [{ backend: "builtin", effectiveMode: "hybrid" }]);
  const asked = daemon.calls("memorySearch")[0]!.body;
  assert.deepEqual(asked, { query: "launch code", maxResults: 3, minScore: 0.2, lexicalOnly: true, sources: ["memory"], citations: "off", workspace: "/ws/main", extraPaths: ["notes", { path: "/srv/wiki", pattern: "*.md" }], sessionKey: KEY });

  const s = manager.status();
  assert.deepEqual([s.backend, s.provider, s.model, s.files, s.chunks, s.dirty, s.workspaceDir], ["builtin", "builtin", "potion", 2, 9, false, "/ws/main"]);
  assert.deepEqual(s.sourceCounts, [{ source: "memory", files: 2, chunks: 9 }, { source: "sessions", files: 1, chunks: 4 }]);
  assert.deepEqual(s.fts, { enabled: true, available: true });
  assert.equal(s.vector?.available, true);
  assert.equal((s.custom as any).messages, 4);
  assert.deepEqual(await manager.probeEmbeddingAvailability(), { ok: true, checked: true });
  assert.equal(await manager.probeVectorAvailability(), true);
  assert.deepEqual(await manager.readFile({ relPath: "MEMORY.md", from: 3, lines: 2 }), { status: "ok", path: "MEMORY.md", text: "line 3\nline 4", from: 3, lines: 2, truncated: true, nextFrom: 5 });
  assert.equal(daemon.calls("memoryGet")[0]!.body.sessionKey, undefined, "the host does not say for whom, so nothing private is read");
  assert.deepEqual(await manager.readFile({ relPath: "memory/none.md" }), { status: "not_found", path: "memory/none.md", text: "" });
  await manager.close();
});

test("an embedder that does not answer is reported, and searching goes on", async (t) => {
  const daemon = await served(t, memoryAnswers({ vector: { enabled: true, available: false }, warning: "the embedder is not reachable" }));
  const { deps } = memoryStage(daemon.dataDir);
  const { manager } = await memoryCapability(() => deps).runtime.getMemorySearchManager({ cfg: slotConfig(), agentId: "main" });
  assert.deepEqual(await manager!.probeEmbeddingAvailability(), { ok: false, checked: true, error: "the embedder is not reachable" });
  assert.equal(await manager!.probeVectorStoreAvailability(), false);
  assert.equal((await manager!.search("x", { sessionKey: KEY })).length, 2);
});

test("sync after a compaction reads the files and what the session has that Hark has not", async (t) => {
  const daemon = await served(t);
  const entries = [{ entryId: "e1", seq: 1, role: "user", createdAt: "2026-11-30T10:00:00Z", message: user("before the compaction") }];
  const { deps } = memoryStage(daemon.dataDir, {}, { transcript: async () => ({ kind: "page", cursor: "c1", hasMore: false, entries }) });
  const { manager } = await memoryCapability(() => deps).runtime.getMemorySearchManager({ cfg: slotConfig(), agentId: "main" });
  const steps: unknown[] = [];
  await manager!.sync({ reason: "post-compaction", sessions: [{ agentId: "main", sessionId: "s1", sessionKey: KEY }], progress: (p) => steps.push([p.completed, p.total]) });
  const sync = daemon.calls("memorySync")[0]!.body;
  assert.deepEqual([sync.reason, sync.workspace, sync.force], ["post-compaction", "/ws/main", undefined]);
  assert.equal(daemon.calls("bootstrap")[0]!.body.history[0].message.content, "before the compaction");
  assert.deepEqual(steps, [[1, 2], [2, 2]]);
  const note = JSON.parse(fs.readFileSync(path.join(daemon.dataDir, "host", "main.json"), "utf8"));
  assert.equal(note.synced.reason, "post-compaction");
});

test("a sync that fails is in the status, and the next good one takes it out", async (t) => {
  const daemon = await served(t);
  const { deps } = memoryStage(daemon.dataDir);
  const { manager } = await memoryCapability(() => deps).runtime.getMemorySearchManager({ cfg: slotConfig(), agentId: "main" });
  const good = daemon.handler;
  daemon.handler = () => ({ status: 507, body: { error: { code: "disk-full", message: "no space left" } } });
  await assert.rejects(manager!.sync({ reason: "watch" }), /no space left/);
  assert.match(manager!.status().lastSyncError!, /no space left/);
  daemon.handler = good;
  await manager!.sync();
  assert.equal(manager!.status().lastSyncError, undefined);
});

test("hits are shown to whom the daemon allows, and no message to anybody while it cannot be asked", async (t) => {
  const daemon = await served(t);
  const { deps, lines } = memoryStage(daemon.dataDir);
  const { runtime } = memoryCapability(() => deps);
  const hits = [hit(), hit({ path: "sessions/s1/m7.md", source: "sessions" })];
  const ask = (requesterSessionKey: string | undefined) => runtime.authorizeSearchHits({ cfg: slotConfig(), agentId: "main", requesterSessionKey, sandboxed: false, hits });
  assert.deepEqual(await ask(KEY), hits);
  assert.deepEqual(await ask(GROUP), [hits[0]]);
  assert.deepEqual(await ask(undefined), [hits[0]]);
  assert.deepEqual(daemon.calls("memoryAuthorize")[0]!.body.hits, [{ path: "MEMORY.md", source: "memory" }, { path: "sessions/s1/m7.md", source: "sessions" }]);
  daemon.handler = () => ({ status: 500, body: { error: { code: "internal", message: "broken" } } });
  assert.deepEqual(await ask(KEY), [hits[0]]);
  daemon.handler = () => ({ body: {} });
  assert.deepEqual(await ask(KEY), [], "an answer that does not say so allows nothing");
  assert.ok(lines.some((l) => /withheld.*broken/.test(l)));
});

test("without a daemon the host is told why there is no manager, and where to look", async () => {
  const { deps } = memoryStage(path.join(tempDir(), "state"), { binary: "/nonexistent/hark" });
  const { runtime } = memoryCapability(() => deps);
  const { manager, error } = await runtime.getMemorySearchManager({ cfg: slotConfig(), agentId: "main" });
  assert.equal(manager, null);
  assert.match(error!, /plugins\.entries\.hark\.config\.binary/);
  const off = await runtime.getMemorySearchManager({ cfg: slotConfig({ enabled: false }), agentId: "main" });
  assert.match(off.error!, /memory\.search\.enabled/);
  await runtime.closeMemorySearchManager({});
  await runtime.closeAllMemorySearchManagers();
  assert.deepEqual(runtime.resolveMemoryBackendConfig({}), { backend: "builtin" });
});

test("an agent's own settings win over everybody's, and extra paths add up", () => {
  const cfg: any = slotConfig({ query: { maxResults: 4 } });
  cfg.agents = { entries: { main: { memory: { search: { enabled: false, extraPaths: ["own"] } } } } };
  const { deps } = memoryStage(tempDir());
  const own = new AgentMemory(deps, cfg, "main").settings;
  assert.deepEqual([own.enabled, own.maxResults, own.extraPaths.at(-1)], [false, 4, "own"]);
  assert.equal(new AgentMemory(deps, cfg, "other").settings.enabled, true);
});

test("memory-core comes along for its dreaming only where nothing speaks against it", () => {
  const cfg = (core?: object): any => ({ plugins: { slots: { memory: "hark" }, entries: { "memory-core": core } } });
  assert.equal(dreamsBeside(cfg(), true), true);
  assert.equal(dreamsBeside(cfg(), false), false);
  assert.equal(dreamsBeside(cfg({ enabled: false }), true), false);
  assert.equal(dreamsBeside({ plugins: {} }, true), false);
});

test("the memory section of the prompt is the same bytes for the same tools, and names only tools that are there", async () => {
  const { promptBuilder } = memoryCapability(() => { throw new Error("a section needs no daemon"); });
  const all = new Set(["memory_search", "memory_get", "hark_open"]);
  const lines = promptBuilder({ availableTools: all });
  assert.equal(lines[0], "## Memory Recall");
  assert.deepEqual(promptBuilder({ availableTools: new Set([...all].reverse()) }), lines);
  assert.deepEqual(promptBuilder({ availableTools: new Set(["read"]) }), []);
  assert.ok(!promptBuilder({ availableTools: new Set(["memory_search"]) }).join().match(/memory_get|hark_open/));
  assert.ok(!promptBuilder({ availableTools: new Set(["memory_get"]) }).join().includes("memory_search"));
  assert.match(promptBuilder({ availableTools: all, citationsMode: "off" }).join(), /Do not name file paths/);
  assert.match(lines.join(), /Source: <path#line>/);
});

test("the flush plan keeps to the host's settings, one file of the day, and small windows", () => {
  const nowMs = Date.parse("2026-03-01T23:30:00Z");
  const cfg = (memoryFlush: object): any => ({ agents: { defaults: { userTimezone: "Europe/Berlin", compaction: { memoryFlush } } } });
  const plan = flushPlan({ cfg: cfg({ model: " ollama/qwen3 ", forceFlushTranscriptBytes: "3mb", softThresholdTokens: 900 }), nowMs })!;
  assert.equal(plan.relativePath, "memory/2026-03-02.md", "the user's day, not UTC's");
  assert.ok(plan.prompt.includes(plan.relativePath) && plan.systemPrompt.includes(plan.relativePath) && plan.prompt.includes("NO_REPLY"));
  assert.deepEqual([plan.model, plan.forceFlushTranscriptBytes, plan.softThresholdTokens, plan.reserveTokensFloor], ["ollama/qwen3", 3 << 20, 900, 20_000]);
  assert.equal(flushPlan({ cfg: cfg({ enabled: false }), nowMs }), null);
  const small = flushPlan({ nowMs, contextWindowTokens: 8000 })!;
  assert.deepEqual([small.reserveTokensFloor, small.softThresholdTokens], [2000, 3000]);
  assert.equal(flushPlan({ cfg: cfg({ forceFlushTranscriptBytes: "lots" }), nowMs })!.forceFlushTranscriptBytes, 2 << 20);
});

test("only the workspace's own memory files may enter a prompt by themselves", async () => {
  const ws = tempDir();
  const put = (file: string): void => {
    fs.mkdirSync(path.dirname(path.join(ws, file)), { recursive: true });
    fs.writeFileSync(path.join(ws, file), "x");
  };
  ["MEMORY.md", "memory/2026-03-01.md", "memory/.dreams/a.md", "DREAMS.md", "notes.md", "USER.md"].forEach(put);
  const outside = path.join(tempDir(), "leak.md");
  fs.writeFileSync(outside, "x");
  fs.symlinkSync(outside, path.join(ws, "memory", "link.md"));
  const { deps, host } = memoryStage(tempDir());
  host.provenance = async (p) => (p.relativePath === "USER.md" ? "untrusted" : undefined);
  const { runtime } = memoryCapability(() => deps);
  const ask = async (relativePaths: string[], readSources?: { relativePath: string; canonicalRelativePath?: string }[]): Promise<string[]> =>
    (await runtime.classifyWorkspaceMemoryPaths({ workspaceDir: ws, relativePaths, ...(readSources ? { readSources } : {}) })).map((c) => c.originClass);
  assert.deepEqual(await ask(["MEMORY.md", "memory/2026-03-01.md", "memory/.dreams/a.md", "DREAMS.md"]), ["agent", "agent", "system", "system"]);
  assert.deepEqual(await ask(["notes.md", "memory/link.md", "../x.md", "memory/gone.md", "USER.md"]), ["untrusted", "untrusted", "untrusted", "untrusted", "untrusted"]);
  const elsewhere = [{ relativePath: "MEMORY.md", canonicalRelativePath: "MEMORY.md" }, { relativePath: "USER.md", canonicalRelativePath: "../USER.md" }, { relativePath: "a" }];
  assert.deepEqual(await ask(["MEMORY.md", "USER.md", "a"], elsewhere), ["agent", "untrusted", "untrusted"]);
});

test("beside another memory plugin Hark's messages are a corpus of theirs", async (t) => {
  const daemon = await served(t);
  const { deps } = memoryStage(daemon.dataDir);
  const supplement = corpusSupplement(() => deps, slotConfig);
  const [found] = await supplement.search({ query: "launch code", maxResults: 5, agentId: "main", agentSessionKey: KEY, sandboxed: true });
  assert.deepEqual([found!.corpus, found!.kind, found!.path, found!.id], ["hark", "message", "sessions/s1/m7.md", "m7"]);
  assert.match(found!.title!, /Ann, 2026-03-01/);
  const asked = daemon.calls("memorySearch")[0]!.body;
  assert.deepEqual([asked.corpus, asked.sessionKey, asked.sandboxed], ["sessions", KEY, true]);
  assert.deepEqual(await supplement.search({ query: "launch code", agentId: "main", agentSessionKey: GROUP }), [], "what the daemon withholds stays withheld");
  const text = await supplement.get({ lookup: "sessions/s1/m7.md", agentSessionKey: KEY });
  assert.deepEqual(text, { corpus: "hark", kind: "message", path: "sessions/s1/m7.md", content: "the launch code is 4417", fromLine: 1, lineCount: 1 });
  assert.equal(daemon.calls("memoryGet")[0]!.body.sessionKey, KEY);
  assert.equal(await supplement.get({ lookup: "wiki/page.md", agentSessionKey: KEY }), null);
  assert.equal(daemon.calls("memoryGet").length, 1, "other corpora's files are not asked for");
  daemon.handler = () => ({ status: 500, body: { error: { code: "internal", message: "broken" } } });
  await assert.rejects(supplement.search({ query: "x", agentId: "main" }), /broken/, "the host names a corpus that failed");
});

test("with another context engine, what its sessions said is read before a search, once", async (t) => {
  const daemon = await served(t, (seen) => (seen.path.includes("/bootstrap") || seen.path.includes("/cursor") ? usual(seen) : memoryAnswers()(seen)));
  const page = { kind: "page" as const, cursor: "c1", hasMore: false, entries: [{ entryId: "e1", seq: 1, role: "user", createdAt: "2026-11-30T10:00:00Z", message: user("said to another engine") }] };
  const read: string[] = [];
  const { deps, host } = memoryStage(daemon.dataDir, {}, { transcript: async (q) => (read.push(q.sessionKey), page) });
  host.sessions = async () => [
    { key: "agent:main:explicit:old", id: "old", updatedAt: 1 }, { key: "agent:main:explicit:new", id: "new", updatedAt: 2 },
    { key: KEY, id: "s1", updatedAt: 3 }, { key: "agent:main:internal-session-effects:1", id: "x", updatedAt: 4 },
  ];
  const cfg: any = slotConfig();
  cfg.plugins.slots.contextEngine = "legacy";
  const memory = new AgentMemory(deps, cfg, "main");
  await memory.search({ sessionKey: KEY }, { query: "q" });
  assert.deepEqual(read, ["agent:main:explicit:new", "agent:main:explicit:old"], "the latest first; neither the asking session nor the host's own runs");
  await memory.search({ sessionKey: KEY }, { query: "q" });
  assert.equal(read.length, 2, "what did not change is not read again");
  await memory.search({ sessionKey: KEY }, { query: "q", corpus: "memory" });
  await new AgentMemory(deps, slotConfig(), "main").search({ sessionKey: KEY }, { query: "q" });
  assert.equal(read.length, 2, "where Hark is the engine the turns come by themselves");
});
