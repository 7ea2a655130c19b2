// The agent's tools: what they ask, what they answer, and that they never throw into a run.

import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import type { ToolContext } from "../src/hostmemory.ts";
import { messageId } from "../src/harktools.ts";
import { MAX_TOKENS } from "../src/results.ts";
import { toolFactories } from "../src/tools.ts";
import { FakeDaemon, tempDir } from "./fake-daemon.ts";
import { hit, memoryAnswers, memoryStage, slotConfig } from "./memory-play.ts";
import { KEY } from "./play.ts";

const GROUP = "agent:main:telegram:group:7";
const owner: ToolContext = { agentId: "main", sessionKey: KEY, senderIsOwner: true, sandboxed: false };

const served = async (t: { after(f: () => unknown): void }, handler = memoryAnswers()): Promise<FakeDaemon> => {
  const daemon = await new FakeDaemon(handler).listen();
  t.after(() => daemon.close());
  return daemon;
};

/** Calls tools of one registration by name. */
function toolsOf(dataDir: string, options: object = {}, cfg = slotConfig()) {
  const { deps } = memoryStage(dataDir, options);
  const factories = new Map([...toolFactories(() => deps, true, () => cfg), ...toolFactories(() => deps, false, () => cfg)]);
  const inSlot = new Map(toolFactories(() => deps, true, () => cfg));
  return async (name: string, args: unknown, ctx: ToolContext = owner, signal?: AbortSignal): Promise<any> => {
    const tool = (inSlot.get(name) ?? factories.get(name))!(ctx)!;
    const result = await tool.execute("call1", args, signal);
    assert.deepEqual(JSON.parse(result.content[0]!.text), JSON.parse(JSON.stringify(result.details)), "the text says what the details say");
    return result.details;
  };
}

test("memory_search answers as the host's own tool does", async (t) => {
  const daemon = await served(t);
  const call = toolsOf(daemon.dataDir);
  const r = await call("memory_search", { query: "launch code", maxResults: "2", minScore: 0.1, corpus: "all" });
  assert.deepEqual(r.results.map((h: any) => [h.path, h.startLine, h.endLine, h.source, h.corpus, h.citation]), [
    ["MEMORY.md", 3, 5, "memory", "memory", "MEMORY.md#L3-L5"], ["sessions/s1/m7.md", 1, 1, "sessions", "sessions", "sessions/s1/m7.md#L1"],
  ]);
  assert.equal(r.results[0].snippet, "codes are in the safe\n\nSource: MEMORY.md#L3-L5");
  assert.deepEqual([r.provider, r.model, r.mode, r.citations, r.debug.hits], ["builtin", "potion", "hybrid", "auto", 2]);
  for (const absent of ["partial", "warning", "stale", "disabled"]) assert.ok(!(absent in r), absent);
  const asked = daemon.calls("memorySearch")[0]!.body;
  assert.deepEqual([asked.query, asked.maxResults, asked.minScore, asked.corpus, asked.sessionKey, asked.sandboxed], ["launch code", 2, 0.1, "all", KEY, false]);
});

test("what is partial, stale or has a warning says so", async (t) => {
  const daemon = await served(t, () => ({ body: { results: [hit()], provider: "ollama", model: "m", mode: "lexical", partial: true, stale: true, warning: "the embedder was late" } }));
  const r = await toolsOf(daemon.dataDir)("memory_search", { query: "x" });
  assert.deepEqual([r.partial, r.stale, r.warning, r.mode, r.results.length], [true, true, "the embedder was late", "lexical", 1]);
});

test("citations: auto only where nobody else reads along, on everywhere, off nowhere", async (t) => {
  const daemon = await served(t);
  const cited = async (mode: string | undefined, sessionKey: string): Promise<boolean> => {
    const cfg: any = slotConfig();
    if (mode) cfg.memory.citations = mode;
    const r = await toolsOf(daemon.dataDir, {}, cfg)("memory_search", { query: "x" }, { ...owner, sessionKey });
    assert.equal(r.citations, mode ?? "auto");
    assert.equal(r.results[0].snippet.includes("Source:"), r.results[0].citation !== undefined);
    return r.results[0].citation !== undefined;
  };
  assert.deepEqual([await cited(undefined, KEY), await cited("auto", GROUP), await cited("on", GROUP), await cited("off", KEY)], [true, false, true, false]);
});

test("who asks comes from the run, never from the arguments", async (t) => {
  const daemon = await served(t);
  const call = toolsOf(daemon.dataDir);
  const sneaky = { query: "launch code", id: "m7", path: "sessions/s1/m7.md", sessionKey: KEY, agentId: "other", senderIsOwner: true, confirm: true };
  const group: ToolContext = { agentId: "main", sessionKey: GROUP, senderIsOwner: false };
  assert.deepEqual((await call("memory_search", sneaky, group)).results.map((h: any) => h.source), ["memory"]);
  assert.deepEqual((await call("hark_search", sneaky, group)).results, []);
  assert.equal((await call("memory_get", sneaky, group)).status, "not_found");
  assert.equal((await call("hark_open", sneaky, group)).status, "not_found");
  assert.equal((await call("hark_forget", sneaky, group)).status, "refused");
  assert.ok(daemon.calls().every((c) => c.path.startsWith("/v1/agents/main/") && c.body.sessionKey === GROUP));
  assert.equal(daemon.calls("forgetOne").length, 0);
  const nobody = await call("hark_search", { query: "launch code" }, { agentId: "main" });
  assert.deepEqual(nobody.results, [], "without a session key no message is found");
});

test("memory_get reads as the host's own tool does, also from a citation", async (t) => {
  const daemon = await served(t);
  const call = toolsOf(daemon.dataDir);
  assert.deepEqual(await call("memory_get", { path: "MEMORY.md", from: 3, lines: 2 }), { status: "ok", path: "MEMORY.md", text: "line 3\nline 4", from: 3, lines: 2, truncated: true, nextFrom: 5 });
  assert.equal((await call("memory_get", { path: "MEMORY.md#L3-L5" })).status, "ok");
  assert.deepEqual(await call("memory_get", { path: "memory/none.md" }), { status: "not_found", path: "memory/none.md", text: "" });
  assert.equal((await call("memory_get", { path: "sessions/s1/m7.md" })).text, "the launch code is 4417");
  assert.deepEqual(await call("memory_get", { path: "shed.txt" }), { status: "error", path: "shed.txt", text: "", error: "that is no memory file" });
  assert.equal((await call("memory_get", { path: "MEMORY.md", corpus: "wiki" })).status, "not_found");
});

test("results have a limit, and say what was left out and where to go on", async (t) => {
  const long = Array.from({ length: 100 }, (_, i) => hit({ path: `memory/${i}.md`, snippet: "word ".repeat(1000) }));
  const text = "a line of a note\n".repeat(5000);
  const daemon = await served(t, (seen) => ({ body: seen.path.endsWith("memoryGet") ? { status: "ok", path: "a.md", text, from: 11, lines: 5000 } : { results: long, mode: "hybrid" } }));
  const call = toolsOf(daemon.dataDir);
  const tokens = (r: unknown): number => JSON.stringify(r, null, 1).length / 4;
  for (const [name, args] of [["memory_search", { query: "x", maxResults: 1000 }], ["hark_search", { query: "x" }]] as const) {
    const r = await call(name, args);
    assert.ok(tokens(r) < MAX_TOKENS * 1.3 && r.results.length >= 5, `${name}: ${tokens(r)} tokens, ${r.results.length} results`);
    assert.match(r.warning, /\d+ more results had no room/);
  }
  assert.equal(daemon.calls("memorySearch")[0]!.body.maxResults, 50);
  const read = await call("memory_get", { path: "a.md", from: 11 });
  assert.ok(tokens(read) < MAX_TOKENS * 1.3);
  assert.deepEqual([read.truncated, read.nextFrom], [true, 11 + read.text.split("\n").length]);
});

test("hark_search, hark_open: short excerpts, and a message in its conversation", async (t) => {
  const daemon = await served(t);
  const call = toolsOf(daemon.dataDir);
  const r = await call("hark_search", { query: "launch code" });
  assert.deepEqual(r.results, [{ id: "m7", date: "2026-03-01T18:00:00Z", speaker: "Ann", session: "agent:main:main", score: 0.7, snippet: "the launch code is 4417" }]);
  const opened = await call("hark_open", { id: "sessions/s1/m7.md", before: 0, after: 99 });
  assert.deepEqual([opened.status, opened.session, opened.messages.length], ["ok", "agent:main:main", 2]);
  const asked = daemon.calls("open")[0]!.body;
  assert.deepEqual([asked.id, asked.before, asked.after, asked.sessionKey], ["m7", 0, 50, KEY]);
  assert.equal(messageId("sessions/a/b/m9.md#L1-L3"), "m9");
  assert.equal(messageId("m9"), "m9");
});

test("hark_forget shows first, forgets when confirmed, and takes no confirmation for what it has not shown", async (t) => {
  const daemon = await served(t);
  const call = toolsOf(daemon.dataDir);
  const eager = await call("hark_forget", { id: "m7", confirm: true });
  assert.deepEqual([eager.status, eager.forgotten, eager.message.chars], ["confirm", false, 23]);
  assert.match(eager.next, /Ask the user/);
  assert.equal(daemon.calls("forgetOne")[0]!.body.confirm, false);
  const elsewhere = await call("hark_forget", { id: "m7", confirm: true }, { ...owner, sessionKey: "agent:main:explicit:s9" });
  assert.equal(elsewhere.status, "confirm", "shown in another session");
  assert.deepEqual(await call("hark_forget", { id: "sessions/s1/m7.md", confirm: true }), { status: "forgotten", id: "m7", forgotten: true });
  assert.equal((await call("hark_forget", { id: "m7", confirm: true })).status, "confirm", "a confirmation is used once");
  assert.equal((await call("hark_forget", { id: "m8" })).status, "not_found");
  assert.equal((await call("hark_forget", { id: "m7", confirm: true }, { ...owner, senderIsOwner: false })).status, "refused");
});

test("wrong arguments are answered in words, and none widens a search", async (t) => {
  const daemon = await served(t);
  const call = toolsOf(daemon.dataDir);
  const wrong: [string, unknown, RegExp][] = [
    ["memory_search", {}, /query is missing/], ["memory_search", null, /query is missing/], ["memory_search", { query: "x", corpus: "everything" }, /corpus has to be one of/],
    ["memory_search", { query: "x", maxResults: 0 }, /maxResults has to be a whole number/], ["memory_search", { query: "x", minScore: "high" }, /minScore has to be a number/],
    ["memory_search", { query: "x", corpus: "wiki" }, /no wiki/], ["memory_get", { from: 2 }, /path is missing/], ["memory_get", { path: "a", from: -1 }, /from has to be/],
    ["hark_search", { query: 7 }, /query is missing/], ["hark_open", {}, /id is missing/], ["hark_forget", { confirm: true }, /id is missing/],
  ];
  for (const [name, args, message] of wrong) assert.match((await call(name, args)).error, message, `${name} ${JSON.stringify(args)}`);
  assert.equal(daemon.calls().length, 0);
});

test("a daemon that is missing, broken, silent or aborted gives every tool a readable answer", async (t) => {
  const broken = await served(t, () => ({ status: 500, body: { error: { code: "internal", message: "the store is damaged", remedy: "Run hark check" } } }));
  const silent = await served(t, () => "hang");
  const aborted = AbortSignal.abort(new Error("the run is over"));
  const places: [string, (name: string, args: object) => Promise<any>, RegExp][] = [
    ["missing", toolsOf(path.join(tempDir(), "state"), { binary: "/nonexistent/hark" }), /\/nonexistent\/hark/],
    ["broken", toolsOf(broken.dataDir), /the store is damaged/],
    ["silent", toolsOf(silent.dataDir, { toolDeadlineMs: 500 }), /not done within 500 ms/],
    ["aborted", (name, args) => toolsOf(broken.dataDir)(name, args, owner, aborted), /the run is over/],
  ];
  for (const [what, call, why] of places) {
    for (const name of ["memory_search", "hark_search"]) {
      const r = await call(name, { query: "x" });
      assert.deepEqual([r.results, r.disabled, r.unavailable], [[], true, true], `${what} ${name}`);
      assert.match(r.error, why);
      assert.match(r.warning, /does not mean that nothing is remembered/);
      assert.ok(r.action.length > 10);
    }
    for (const [name, args] of [["memory_get", { path: "MEMORY.md" }], ["hark_open", { id: "m7" }], ["hark_forget", { id: "m7" }]] as const) {
      const r = await call(name, args);
      assert.equal(r.status, "error", `${what} ${name}`);
      assert.match(r.error, why);
    }
  }
});
