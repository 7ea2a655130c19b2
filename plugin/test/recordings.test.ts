/**
 * Replays what the real host did, call by call and instance by instance, against a fake daemon, and
 * against the real one where HARK_BINARY names it. HARK_SHARED names the folder above the recordings;
 * where there are none, only what needs no recording is tested.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { FakeDaemon, tempDir, usual } from "./fake-daemon.ts";
import { assistant, KEY, stage, turn, user, type Stage } from "./play.ts";

const dir = path.join(process.env.HARK_SHARED ?? "../../shared", "host", "recordings");
const files = fs.existsSync(dir) ? fs.readdirSync(dir).filter((f) => f.endsWith(".lifecycle.jsonl")) : [];
const binary = process.env.HARK_BINARY;

/** The recording's values as the host's: sets, signals and functions are written as objects there. */
function revive(value: any): any {
  if (typeof value === "string" && value.startsWith("[fn ")) return () => undefined;
  if (Array.isArray(value)) return value.map(revive);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value.$set)) return new Set(value.$set);
  if (value.$abortSignal) return new AbortController().signal;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, k === "config" ? { secret: "sk-secret" } : revive(v)]));
}

async function replay(file: string, s: Stage, check: (method: string, p: any, result: any) => void): Promise<number> {
  const engines = new Map<number, Stage["engine"]>();
  let calls = 0;
  for (const line of fs.readFileSync(path.join(dir, file), "utf8").trim().split("\n")) {
    const record = JSON.parse(line);
    if (record.ev !== "call") continue;
    const engine = engines.get(record.instance) ?? s.another();
    engines.set(record.instance, engine);
    const method = (engine as any)[record.method];
    if (typeof method !== "function" || record.method === "compact") continue;
    const p = revive(record.params ?? {});
    check(record.method, p, await method(p));
    if (record.method === "dispose") engines.delete(record.instance); // another process counts anew
    calls++;
  }
  return calls;
}

function valid(method: string, p: any, result: any): void {
  if (method === "commitTurn") assert.ok(result.status === "committed" || result.status === "duplicate");
  if (method !== "assemble") return;
  assert.ok(Number.isFinite(result.estimatedTokens));
  const own = result.messages.filter((m: any) => !p.messages.includes(m));
  assert.ok(own.length <= 1, "at most the recall is new");
  if (own.length === 1) assert.strictEqual(result.messages.at(-1), own[0]);
  assert.match(result.systemPromptAddition, /## Memory Recall/);
}

for (const file of files) {
  test(`recording ${file}`, async (t) => {
    const daemon = await new FakeDaemon(usual).listen();
    t.after(() => daemon.close());
    const s = stage(daemon.dataDir);
    const calls = await replay(file, s, (method, p, result) => {
      valid(method, p, result);
      if (method === "assemble" && !/internal-session/.test(p.sessionKey)) {
        assert.equal(result.messages.length, p.messages.length + 1);
        p.messages.forEach((m: any, i: number) => assert.strictEqual(result.messages[i], m));
      }
    });
    assert.ok(calls > 0 || /^0(3|6b|9)|^10/.test(file), "the recording has calls");
    assert.deepEqual(s.lines.filter((l) => !l.includes("earlier messages")), []);
    for (const call of daemon.calls()) {
      assert.ok(!/sk-secret|runtimeContext|internal-session-effects/.test(call.raw + call.path), call.path);
    }
  });

  test(`recording ${file} against the real daemon`, { skip: !binary }, async (t) => {
    const data = path.join(tempDir(), "state");
    const s = stage(data, { binary });
    t.after(() => endDaemon(data));
    const statuses = new Map<string, string[]>();
    await replay(file, s, (method, p, result) => {
      valid(method, p, result);
      if (method === "commitTurn") statuses.set(p.advancementKey, [...(statuses.get(p.advancementKey) ?? []), result.status]);
    });
    for (const [, seen] of statuses) assert.deepEqual(seen, seen.map((_, i) => (i === 0 ? "committed" : "duplicate")));
    assert.deepEqual(s.lines.filter((l) => !l.includes("earlier messages")), []);
  });
}

test("two processes start at once on one data folder, and one of two same commits counts", { skip: !binary }, async (t) => {
  const data = path.join(tempDir(), "state");
  t.after(() => endDaemon(data));
  const both = [stage(data, { binary }), stage(data, { binary })];
  const p = turn("k1", [user("my bike is green"), assistant("noted")]);
  const done = await Promise.all(both.map((s) => s.engine.commitTurn(p)));
  assert.deepEqual(done.map((d) => d.status).sort(), ["committed", "duplicate"]);
  for (const s of both) {
    const r = await s.another().assemble({ sessionId: "s2", sessionKey: KEY.replace("s1", "s2"), messages: [], prompt: "which colour is my bike?" });
    assert.match(JSON.stringify(r.messages), /my bike is green/);
  }
  // Another agent has a store of its own.
  const other = await both[0]!.another().assemble({ sessionId: "s2", sessionKey: "agent:other:explicit:s2", messages: [], prompt: "which colour is my bike?" });
  assert.deepEqual(other.messages, []);
});

test("the real daemon is killed and hangs in the middle", { skip: !binary }, async (t) => {
  const data = path.join(tempDir(), "state");
  t.after(() => endDaemon(data));
  const s = stage(data, { binary, deadlineMs: 1500, commitDeadlineMs: 20_000 }, {}, { hello: 300 });
  await s.engine.commitTurn(turn("k1", [user("the shed key is under the blue pot"), assistant("noted")]));
  process.kill(daemonPid(data), "SIGKILL");
  await s.engine.commitTurn(turn("k2", [user("the gate code is 4417"), assistant("noted")]));
  assert.deepEqual(await s.engine.commitTurn(turn("k1", [user("the shed key is under the blue pot"), assistant("noted")])), { status: "duplicate" });
  const ask = (prompt: string): Promise<any> => s.another().assemble({ sessionId: "s2", sessionKey: KEY.replace("s1", "s2"), messages: [user("hi")], prompt });
  assert.match(JSON.stringify((await ask("where is the shed key?")).messages), /blue pot/);
  const pid = daemonPid(data);
  process.kill(pid, "SIGSTOP");
  const begin = performance.now();
  const hung = await ask("what is the gate code?").finally(() => process.kill(pid, "SIGCONT"));
  assert.equal(hung.messages.length, 1);
  assert.ok(performance.now() - begin < 4000);
  await new Promise((r) => setTimeout(r, 300));
  assert.match(JSON.stringify((await ask("what is the gate code?")).messages), /4417/);
});

function daemonPid(data: string): number {
  return JSON.parse(fs.readFileSync(path.join(data, "daemon.json"), "utf8")).pid;
}

function endDaemon(data: string): void {
  if (fs.existsSync(path.join(data, "daemon.json"))) process.kill(daemonPid(data), "SIGTERM");
}
