// Hosts that offer less than an agent run, and session files that are none.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { FakeDaemon, tempDir, usual } from "./fake-daemon.ts";
import { assistant, KEY, stage, user } from "./play.ts";

const page = (n: number) => ({
  kind: "page" as const, cursor: "c" + n, hasMore: false,
  entries: Array.from({ length: n }, (_, i) => ({ entryId: "e" + i, seq: i, role: "user", createdAt: "2026-11-30T10:00:00Z", message: user("m" + i) })),
});

test("HOST-18: a host that offers only bootstrap, after-turn and maintain is stored, and nothing fails", async (t) => {
  const daemon = await new FakeDaemon(usual).listen();
  t.after(() => daemon.close());
  const { engine, lines } = stage(daemon.dataDir);
  assert.equal((engine.info.hostRequirements as any)["agent-run"], undefined, "nothing is required that such a host lacks");
  const p = { sessionId: "s1", sessionKey: KEY, sessionFile: KEY };
  assert.deepEqual(await engine.bootstrap(p), { bootstrapped: true, importedMessages: 0 });
  await engine.afterTurn({ ...p, messages: [user("my bike is green"), assistant("noted")], prePromptMessageCount: 0 });
  assert.equal((await engine.maintain(p)).changed, false);
  assert.equal(daemon.calls("afterTurn")[0]!.body.messages[0].content, "my bike is green");
  assert.deepEqual(lines, []);
  const note = JSON.parse(fs.readFileSync(path.join(daemon.dataDir, "host", "main.json"), "utf8"));
  assert.ok(note.committed && !note.served, "the status tells from this that the host recalls nothing");
});

const binary = process.env.HARK_BINARY;

test("HOST-18: hark status says that recall is off on such a host", { skip: !binary && "HARK_BINARY names no program" }, async (t) => {
  const data = tempDir();
  const { engine, shared } = stage(data, { binary, idleExit: "60s" });
  t.after(() => {
    try {
      process.kill(JSON.parse(fs.readFileSync(path.join(data, "daemon.json"), "utf8")).pid);
    } catch {
      // it ended by itself
    }
  });
  const p = { sessionId: "s1", sessionKey: KEY, sessionFile: KEY };
  assert.equal((await engine.bootstrap(p)).bootstrapped, true);
  await engine.afterTurn({ ...p, messages: [user("my bike is green"), assistant("noted")], prePromptMessageCount: 0 });
  await engine.maintain(p);
  const told = spawnSync(binary!, ["status", "--data", data], { encoding: "utf8", env: { PATH: process.env.PATH, HOME: data } });
  assert.match(told.stdout, /recall.*off.*asked for no context/is, told.stdout + told.stderr);
  assert.equal(shared.config.dataDir, data);
});

test("HOST-19: a session file that does not exist, or is no file, is not needed: the cursor says what there is", async (t) => {
  const daemon = await new FakeDaemon(usual).listen();
  t.after(() => daemon.close());
  for (const sessionFile of ["/state/agents/main/sessions/gone.jsonl", KEY, "sqlite://agents/main/openclaw-agent.sqlite#s1", "", undefined]) {
    const { engine, lines } = stage(daemon.dataDir, {}, { transcript: async () => page(3) });
    const done = await engine.bootstrap({ sessionId: "s1", sessionKey: KEY, ...(sessionFile === undefined ? {} : { sessionFile }) });
    assert.deepEqual(done, { bootstrapped: true, importedMessages: 3 }, String(sessionFile));
    assert.deepEqual(lines, []);
  }
  const { engine } = stage(daemon.dataDir, {}, { transcript: async () => ({ kind: "missing" }) });
  assert.deepEqual(await engine.bootstrap({ sessionId: "s2", sessionKey: KEY, sessionFile: "/gone" }), { bootstrapped: true, importedMessages: 0 });
});

test("a body over the daemon's limit is refused here: nothing is restarted, and no turn blocks its session", async (t) => {
  const daemon = await new FakeDaemon(usual).listen();
  t.after(() => daemon.close());
  const { engine, lines } = stage(daemon.dataDir);
  const place = { agentId: "main", sessionId: "s1", sessionKey: KEY };
  const huge = { advancementKey: "k", sessionId: "s1", sessionKey: KEY, admission: place, terminal: place, messages: [user("x".repeat(70 << 20))] };
  assert.deepEqual(await engine.commitTurn(huge), { status: "duplicate" });
  assert.ok(lines.some((l) => /71 MiB.*over the limit/.test(l)), lines.join("\n"));
  const messages = [user("y".repeat(70 << 20))];
  const r = await engine.assemble({ sessionId: "s1", sessionKey: KEY, messages });
  assert.strictEqual(r.messages[0], messages[0]);
  assert.equal(daemon.seen.length, 0, "neither the call nor a greeting was sent");
  assert.equal((await engine.assemble({ sessionId: "s1", sessionKey: KEY, messages: [user("z")] })).messages.length, 2);
});
