/**
 * Replays what the real host did, call by call and instance by instance, against a fake daemon, and
 * against the real one where HARK_BINARY names it. HARK_SHARED names the folder of the recordings.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { FakeDaemon, tempDir, usual } from "./fake-daemon.ts";
import { stage, type Stage } from "./play.ts";

const dir = process.env.HARK_SHARED ? path.join(process.env.HARK_SHARED, "host", "recordings") : "";
const files = dir && fs.existsSync(dir) ? fs.readdirSync(dir).filter((f) => f.endsWith(".lifecycle.jsonl")) : [];
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
    t.after(() => {
      const record = path.join(data, "daemon.json");
      if (fs.existsSync(record)) process.kill(JSON.parse(fs.readFileSync(record, "utf8")).pid, "SIGTERM");
    });
    const statuses = new Map<string, string[]>();
    await replay(file, s, (method, p, result) => {
      valid(method, p, result);
      if (method === "commitTurn") statuses.set(p.advancementKey, [...(statuses.get(p.advancementKey) ?? []), result.status]);
    });
    for (const [, seen] of statuses) assert.deepEqual(seen, seen.map((_, i) => (i === 0 ? "committed" : "duplicate")));
    assert.deepEqual(s.lines.filter((l) => !l.includes("earlier messages")), []);
  });
}
