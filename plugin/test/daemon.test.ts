import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { bundledBinary } from "../src/binary.ts";
import { FakeDaemon, tempDir, usual } from "./fake-daemon.ts";
import { assistant, impatient, KEY, stage, turn, user } from "./play.ts";

const call = { sessionId: "s1", sessionKey: KEY, messages: [user("a"), assistant("b")] };
const pause = (ms: number): Promise<void> => new Promise((r) => setTimeout(r, ms));

/** A program that serves as `hark serve` does; each start leaves a line in starts.log. */
function fakeHark(dir: string, body = ""): string {
  const file = path.join(dir, "hark");
  fs.writeFileSync(file, `#!${process.execPath}
const fs = require("fs"), http = require("http"), path = require("path");
const data = process.argv[process.argv.indexOf("--data") + 1];
fs.appendFileSync(path.join(data, "starts.log"), JSON.stringify({ pid: process.pid, args: process.argv.slice(2), env: process.env }) + "\\n");
${body}
const socket = path.join(data, "hark.sock");
try { fs.unlinkSync(socket) } catch {}
const server = http.createServer((q, s) => {
  let b = ""; q.on("data", (d) => b += d); q.on("end", () => {
    const reply = (o) => { s.setHeader("content-type", "application/json"); s.end(JSON.stringify(o)); };
    if (q.url === "/v1/hello") return reply({ protocol: 1, pid: process.pid });
    if (q.url === "/v1/shutdown") { reply({}); return setTimeout(() => process.exit(0), 5); }
    if (q.url.endsWith("/commitTurn")) { fs.appendFileSync(path.join(data, "turns.log"), b + "\\n"); return reply({ status: "committed" }); }
    if (q.url.includes("/cursor")) return reply({ cursor: "" });
    reply({ kept: [], insert: [{ position: 0, message: { role: "custom", content: "from " + process.pid } }], estimatedTokens: 1 });
  });
});
server.listen(socket, () => { fs.writeFileSync(path.join(data, "daemon.json"), JSON.stringify({ protocol: 1, pid: process.pid, socket })); });
setTimeout(() => process.exit(0), 60000);
`, { mode: 0o755 });
  return file;
}

const starts = (dir: string): any[] =>
  fs.existsSync(path.join(dir, "starts.log")) ? fs.readFileSync(path.join(dir, "starts.log"), "utf8").trim().split("\n").map((l) => JSON.parse(l)) : [];

function cleanup(t: { after(f: () => unknown): void }, dir: string): void {
  t.after(() => {
    for (const { pid } of starts(dir)) try { process.kill(pid, "SIGKILL"); } catch { /* it ended by itself */ }
  });
}

test("building engines starts nothing and touches nothing", () => {
  const dir = path.join(tempDir(), "state");
  const s = stage(dir, { binary: "/nonexistent" });
  for (let i = 0; i < 500; i++) void s.another().dispose();
  assert.equal(fs.existsSync(dir), false);
});

test("the first call starts the daemon; calls at the same time share one start", async (t) => {
  const dir = tempDir();
  const data = path.join(dir, "state");
  cleanup(t, data);
  process.env.OPENAI_API_KEY = "sk-secret";
  const s = stage(data, { binary: fakeHark(dir), idleExit: "3m", recall: { maxTokens: 700 } });
  const [a, b] = await Promise.all([s.engine.assemble(call), s.another().assemble(call)]);
  assert.match(String(a.messages[0]!.content), /from/);
  assert.deepEqual(a.messages, b.messages);
  const [start, ...more] = starts(data);
  assert.equal(more.length, 0);
  assert.deepEqual(start.args, ["serve", "--data", data, "--idle-exit", "3m"]);
  assert.equal(start.env.HARK_RECALL_MAX_TOKENS, "700");
  assert.equal(start.env.OPENAI_API_KEY, undefined, "keys of model providers are not the daemon's business");
  assert.equal(fs.statSync(data).mode & 0o777, 0o700);
});

test("kill -9 of the daemon: the turn is committed to the next one", async (t) => {
  const dir = tempDir();
  cleanup(t, dir);
  const s = stage(dir, { binary: fakeHark(dir) });
  await s.engine.assemble(call);
  process.kill(starts(dir)[0].pid, "SIGKILL");
  await pause(20);
  assert.deepEqual(await s.engine.commitTurn(turn("k1", [user("x"), assistant("y")])), { status: "committed" });
  assert.equal(starts(dir).length, 2);
  assert.match(fs.readFileSync(path.join(dir, "turns.log"), "utf8"), /"advancementKey":"k1"/);
  const r = await s.another().assemble(call);
  assert.equal(r.messages[0]!.content, "from " + starts(dir)[1].pid);
});

test("a connection that breaks in the middle is tried once more, and only once", async (t) => {
  let n = 0;
  const daemon = await new FakeDaemon((seen) => (n++ === 0 ? "drop" : usual(seen))).listen();
  t.after(() => daemon.close());
  const s = stage(daemon.dataDir);
  assert.deepEqual(await s.engine.commitTurn(turn("k", [user("a")])), { status: "committed" });
  assert.equal(daemon.calls("commitTurn").length, 2);
  daemon.handler = () => "drop";
  await assert.rejects(s.engine.commitTurn(turn("k2", [user("a")])));
  assert.equal(daemon.calls("commitTurn").length, 4);
});

test("a daemon that hangs costs one deadline, and is used again when it is back", async (t) => {
  const daemon = await new FakeDaemon(usual).listen();
  t.after(() => daemon.close());
  const s = stage(daemon.dataDir, { deadlineMs: 1000 }, {}, impatient);
  await s.engine.assemble(call);
  const hello = daemon.hello;
  daemon.handler = () => "hang";
  daemon.hello = () => "hang";
  const begin = performance.now();
  const r = await s.another().assemble(call);
  const one = performance.now() - begin;
  assert.strictEqual(r.messages[0], call.messages[0]);
  assert.equal(r.messages.length, 2);
  assert.ok(one >= 990 && one < 1900, `took ${one} ms`);
  await assert.rejects(s.engine.commitTurn(turn("k", [user("a")])), { code: "hung" });
  await s.engine.maintain({ sessionId: "s1", sessionKey: KEY });
  assert.ok(performance.now() - begin - one < 900, "nothing else waits");
  daemon.handler = usual;
  daemon.hello = hello;
  await pause(170);
  assert.deepEqual(await s.engine.commitTurn(turn("k", [user("a")])), { status: "committed" });
  assert.equal((await s.engine.assemble(call)).messages.length, 3);
});

test("a daemon that is only slow is not given up", async (t) => {
  const daemon = await new FakeDaemon(() => "hang").listen();
  t.after(() => daemon.close());
  const s = stage(daemon.dataDir, { deadlineMs: 400 });
  assert.equal((await s.engine.assemble(call)).messages.length, 2);
  await daemon.calls("assemble")[0]!.aborted;
  daemon.handler = usual;
  assert.deepEqual(await s.engine.commitTurn(turn("k", [user("a")])), { status: "committed" });
});

test("an instance that is disposed closes its connection, so that its work ends", async (t) => {
  const daemon = await new FakeDaemon(() => "hang").listen();
  t.after(() => daemon.close());
  const s = stage(daemon.dataDir);
  const pending = s.engine.assemble(call);
  while (daemon.calls("assemble").length === 0) await pause(5);
  await s.engine.dispose();
  assert.equal((await pending).messages.length, 2);
  await daemon.calls("assemble")[0]!.aborted;
  assert.deepEqual(s.lines, [], "nobody waits, so nobody is told");
});

test("with the binary missing every method answers and says what to do", async () => {
  const dir = path.join(tempDir(), "state");
  const s = stage(dir, { binary: "/nonexistent/hark" });
  const r = await s.engine.assemble(call);
  assert.strictEqual(r.messages[1], call.messages[1]);
  assert.equal(r.systemPromptAddition, "## Memory Recall");
  assert.equal((await s.engine.bootstrap({ sessionId: "s1", sessionKey: KEY })).bootstrapped, false);
  await assert.rejects(s.engine.commitTurn(turn("k", [user("a")])), /plugins\.entries\.hark\.config\.binary/);
  assert.ok(s.lines.some((l) => l.includes("/nonexistent/hark")));
  assert.equal(fs.existsSync(dir), false, "nothing is created for a program that is not there");
});

test("a program that does not serve is named with its last words, and not started for every call", async (t) => {
  const dir = tempDir();
  cleanup(t, dir);
  const s = stage(dir, { binary: fakeHark(dir, 'console.error("hark: the store is newer than this program"); process.exit(1);') }, {}, { start: 3000, refused: 2000 });
  await s.engine.assemble(call);
  await s.engine.assemble(call);
  assert.equal(starts(dir).length, 1);
  assert.ok(s.lines.some((l) => /ended with code 1: hark: the store is newer/.test(l)), s.lines.join("\n"));
  await pause(2100);
  await s.engine.assemble(call);
  assert.equal(starts(dir).length, 2, "after a while it is tried again");
});

test("changed settings start the daemon again, once; a daemon of somebody else stays", async (t) => {
  const dir = tempDir();
  cleanup(t, dir);
  const binary = fakeHark(dir);
  const options = { binary };
  await stage(dir, options).engine.assemble(call);
  await stage(dir, options).engine.assemble(call);
  assert.equal(starts(dir).length, 1);
  const other = stage(dir, { ...options, recall: { maxTokens: 99 } });
  await other.engine.assemble(call);
  await other.another().assemble(call);
  assert.equal(starts(dir).length, 2);
  assert.equal(starts(dir)[1].env.HARK_RECALL_MAX_TOKENS, "99");
  fs.rmSync(path.join(dir, "plugin.json"));
  await stage(dir, options).engine.assemble(call);
  assert.equal(starts(dir).length, 2);
});

test("another protocol version is refused with a remedy", async (t) => {
  const daemon = await new FakeDaemon(usual).listen();
  t.after(() => daemon.close());
  daemon.write({ protocol: 2, pid: 4711, socket: "/x" });
  const s = stage(daemon.dataDir);
  const r = await s.engine.assemble(call);
  assert.equal(r.messages.length, 2);
  assert.ok(s.lines.some((l) => /protocol 2.*speaks 1.*4711/.test(l)), s.lines.join("\n"));
});

test("a daemon.json and a socket that a crash left behind are replaced", async (t) => {
  const dir = tempDir();
  cleanup(t, dir);
  const s = stage(dir, { binary: fakeHark(dir) });
  await s.engine.assemble(call);
  process.kill(starts(dir)[0].pid, "SIGKILL");
  await pause(20);
  assert.ok(fs.existsSync(path.join(dir, "daemon.json")) && fs.existsSync(path.join(dir, "hark.sock")));
  const fresh = await stage(dir, { binary: path.join(dir, "hark") }).engine.assemble(call);
  assert.equal(fresh.messages[0]!.content, "from " + starts(dir)[1].pid);
});

test("a hung daemon costs a new process one deadline too", async (t) => {
  const daemon = await new FakeDaemon(() => "hang").listen();
  t.after(() => daemon.close());
  daemon.hello = () => "hang";
  const s = stage(daemon.dataDir, { deadlineMs: 1000 }, {}, impatient);
  const begin = performance.now();
  await s.engine.bootstrap({ sessionId: "s1", sessionKey: KEY });
  await s.engine.maintain({ sessionId: "s1", sessionKey: KEY });
  assert.equal((await s.engine.assemble(call)).messages.length, 2);
  const ms = performance.now() - begin;
  assert.ok(ms < 2900, `took ${ms} ms`);
});

test("loopback TCP with a token, where there are no Unix sockets", async (t) => {
  const daemon = await new FakeDaemon(usual).listen("tcp", "s3cret");
  t.after(() => daemon.close());
  assert.equal((await stage(daemon.dataDir).engine.assemble(call)).messages.length, 3);
  assert.equal(daemon.calls("assemble")[0]!.headers.authorization, "Bearer s3cret");
});

test("two processes at once: the one that loses finds the other's daemon", async (t) => {
  const dir = tempDir();
  cleanup(t, dir);
  const lock = 'try { fs.mkdirSync(path.join(data, "lock")) } catch { process.exit(0) }\n';
  const binary = fakeHark(dir, lock);
  const options = { binary };
  const [a, b] = await Promise.all([stage(dir, options).engine.assemble(call), stage(dir, options).engine.assemble(call)]);
  assert.deepEqual(a.messages, b.messages);
  assert.equal(a.messages.length, 1);
});

test("the bundled program is named as Go names systems", () => {
  assert.equal(bundledBinary("linux", "x64"), path.join("bin", "linux-amd64", "hark"));
  assert.equal(bundledBinary("darwin", "arm64"), path.join("bin", "darwin-arm64", "hark"));
  assert.equal(bundledBinary("win32", "x64"), path.join("bin", "windows-amd64", "hark.exe"));
});
