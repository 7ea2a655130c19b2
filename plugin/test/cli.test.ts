// "openclaw hark …": what goes through to the program, and taking in the host's own sessions.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { type CliDeps, runCli } from "../src/cli.ts";
import { FakeDaemon, tempDir, usual } from "./fake-daemon.ts";
import { memoryAnswers, memoryStage, slotConfig } from "./memory-play.ts";
import { user } from "./play.ts";

function cli(dataDir: string, functions: object = {}, program = "/nonexistent/hark") {
  const { deps, host } = memoryStage(dataDir, { recall: { maxTokens: 700 } }, functions);
  const said: string[] = [];
  const noted: string[] = [];
  const daemon = { program: async () => program, environment: () => ({ PATH: process.env.PATH!, HARK_RECALL_MAX_TOKENS: "700" }) };
  const all: CliDeps = { ...deps, daemon, say: (l) => said.push(l), note: (l) => noted.push(l) };
  return { host, said, noted, run: (...args: string[]) => runCli(args, all, slotConfig()) };
}

test("a command goes to the program with the plugin's data and options, and its exit code comes back", async () => {
  const dir = tempDir();
  const program = path.join(dir, "hark");
  fs.writeFileSync(program, `#!${process.execPath}\nrequire("fs").writeFileSync(process.env.HARK_DATA + "/ran.json", JSON.stringify({ args: process.argv.slice(2), env: process.env })); process.exit(process.argv.includes("--bad") ? 7 : 0);\n`, { mode: 0o755 });
  process.env.OPENAI_API_KEY = "sk-secret";
  const { run } = cli(dir, {}, program);
  const ran = (): any => JSON.parse(fs.readFileSync(path.join(dir, "ran.json"), "utf8"));
  assert.equal(await run("search", "-k", "3", "which port", "--json"), 0);
  assert.deepEqual(ran().args, ["search", "-k", "3", "which port", "--json"]);
  assert.deepEqual([ran().env.HARK_DATA, ran().env.HARK_RECALL_MAX_TOKENS, ran().env.OPENAI_API_KEY], [dir, "700", undefined]);
  assert.equal(await run("status", "--bad"), 7);
  assert.equal(await run("import", "history.jsonl"), 0);
  assert.deepEqual(ran().args, ["import", "history.jsonl"], "files are the program's to import");
  await run("memory", "search", "keys", "--agent", "work");
  assert.deepEqual(ran().args, ["memory", "search", "keys", "--agent", "work", "--workspace", "/ws/work"]);
  await run("memory", "status", "--workspace=/elsewhere");
  assert.deepEqual(ran().args, ["memory", "status", "--workspace=/elsewhere"]);
});

test("a program that is missing is told with what to do", async () => {
  const { run, noted } = cli(tempDir());
  assert.equal(await run("status"), 1);
  assert.match(noted.join(), /\/nonexistent\/hark/);
});

/** A daemon that keeps cursors, and a host whose sessions have two pages each. */
function history() {
  const cursors = new Map<string, string>();
  const stored = new Set<string>();
  const handler = (seen: any): any => {
    const method = seen.path.split("?")[0].split("/").at(-1);
    if (method === "cursor") return { body: { cursor: cursors.get(new URLSearchParams(seen.path.split("?")[1]).get("session")!) ?? "" } };
    if (method === "bootstrap") {
      const rows = (seen.body.history ?? []).map((e: any) => seen.body.sessionKey + e.entryId);
      const fresh = rows.filter((r: string) => !stored.has(r));
      fresh.forEach((r: string) => stored.add(r));
      if (seen.body.cursor) cursors.set(seen.body.sessionKey, seen.body.cursor);
      return { body: { bootstrapped: true, importedMessages: fresh.length } };
    }
    return method === "memorySync" || method === "memoryStatus" ? memoryAnswers()(seen) : usual(seen);
  };
  const transcript = async (q: any): Promise<any> => {
    const from = Number(q.cursor ?? 0);
    const entries = [0, 1].map((i) => ({ entryId: `e${from + i}`, seq: from + i, role: "user", createdAt: "2026-11-30T10:00:00Z", message: user("m" + (from + i)) }));
    return from >= 4 ? { kind: "page", cursor: "4", hasMore: false, entries: [] } : { kind: "page", cursor: String(from + 2), hasMore: from + 2 < 4, entries };
  };
  return { handler, transcript, stored };
}

test("hark import takes in every session of the host and the memory files, exactly once, and can be tried first", async (t) => {
  const { handler, transcript, stored } = history();
  const daemon = await new FakeDaemon(handler).listen();
  t.after(() => daemon.close());
  const { run, said, noted, host } = cli(daemon.dataDir, { transcript });
  host.sessions = async () => ["agent:main:main", "agent:main:telegram:group:7", "agent:main:internal-session-effects:1"].map((key, i) => ({ key, id: "s" + i, updatedAt: i }));
  assert.equal(await run("import", "--dry-run"), 0);
  assert.deepEqual([said.pop(), stored.size], ["main: 8 messages to take in from 2 sessions, 2 memory files", 0]);
  assert.equal(daemon.calls("bootstrap").length + daemon.calls("memorySync").length, 0);
  assert.equal(await run("import"), 0);
  assert.deepEqual([said.pop(), stored.size], ["main: 8 new messages from 2 sessions, 2 memory files", 8]);
  assert.ok(noted.includes("main: session 2 of 2, 8 messages"));
  assert.equal(await run("import", "--json", "--agent", "main"), 0);
  assert.deepEqual(JSON.parse(said.pop()!), { dryRun: false, agents: [{ agent: "main", sessions: 2, messages: 0, files: 2, problems: [] }] });
  assert.equal(stored.size, 8);
  assert.equal(await run("import", "--help"), 0);
  assert.match(said.pop()!, /--dry-run/);
});

test("an import that was interrupted goes on where it stopped, and names what it left out", async (t) => {
  const { handler, transcript, stored } = history();
  let broken = true;
  const daemon = await new FakeDaemon(handler).listen();
  t.after(() => daemon.close());
  const { run, said, host } = cli(daemon.dataDir, { transcript: async (q: any) => { if (broken && q.cursor === "2") throw new Error("the disk is gone"); return await transcript(q); } });
  host.sessions = async () => [{ key: "agent:main:main", id: "s1", updatedAt: 1 }];
  assert.equal(await run("import", "--quiet"), 1);
  assert.match(said.join("\n"), /agent:main:main: .*disk is gone/);
  assert.equal(stored.size, 2);
  broken = false;
  said.length = 0;
  assert.equal(await run("import", "--quiet"), 0);
  assert.deepEqual([said, stored.size], [["main: 2 new messages from 1 sessions, 2 memory files"], 4]);
});
