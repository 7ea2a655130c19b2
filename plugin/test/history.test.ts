import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { chainOf } from "../src/client.ts";
import { assembled, FakeDaemon, type Seen } from "./fake-daemon.ts";
import { assistant, KEY, stage, user } from "./play.ts";

/** A daemon that keeps the last history of every session, as the real one does. */
class Keeper {
  kept: string[] = [];
  resends = 0;
  handler = (seen: Seen): any => {
    if (!seen.path.endsWith("/assemble")) return { body: {} };
    const b = seen.body;
    let all: any[];
    if (b.history) {
      const { base, count, messages } = b.history;
      if (count > this.kept.length || chainOf(this.kept.slice(0, count)).at(-1) !== base) {
        this.resends++;
        return { status: 409, body: { error: { code: "resend", message: "send all" } } };
      }
      all = [...this.kept.slice(0, count), ...messages.map((m: any) => JSON.stringify(m))];
    } else all = b.messages.map((m: any) => JSON.stringify(m));
    this.kept = all;
    return { body: assembled(all.length, b.memoryPrompt) };
  };
}

test("the chain is what the protocol says", () => {
  const sha = (...parts: (string | Buffer)[]): Buffer => parts.reduce((h, p) => h.update(p), createHash("sha256")).digest();
  const a = JSON.stringify(user("größe 🚲"));
  const d1 = sha(sha(""), sha(a));
  const d2 = sha(d1, sha("null"));
  assert.deepEqual(chainOf([a, "null"]), [sha(""), d1, d2].map((d) => d.toString("hex")));
});

test("a growing session sends only what is new, also from a fresh instance", async (t) => {
  const keeper = new Keeper();
  const daemon = await new FakeDaemon(keeper.handler).listen();
  t.after(() => daemon.close());
  const s = stage(daemon.dataDir);
  const history: any[] = [];
  let full = 0;
  for (let i = 0; i < 20; i++) {
    const r = await s.another().assemble({ sessionId: "s1", sessionKey: KEY, messages: structuredClone(history), prompt: "p" });
    assert.equal(r.messages.length, history.length + 1);
    full += JSON.stringify(history).length;
    history.push(user("question " + i + " " + "x".repeat(400), i), assistant("answer " + "y".repeat(400), i));
  }
  const sent = daemon.calls("assemble").reduce((n, c) => n + JSON.stringify(c.body.history.messages).length, 0);
  assert.equal(keeper.resends, 0);
  assert.ok(sent * 5 < full, `${sent} of ${full} bytes of history were sent`);
  assert.deepEqual(keeper.kept, history.slice(0, 38).map((m) => JSON.stringify(m)));
});

test("a changed, shortened or compacted history is sent from where it differs", async (t) => {
  const keeper = new Keeper();
  const daemon = await new FakeDaemon(keeper.handler).listen();
  t.after(() => daemon.close());
  const s = stage(daemon.dataDir);
  const m = Array.from({ length: 6 }, (_, i) => user("m" + i, i));
  const ask = async (messages: any[]): Promise<number> => {
    await s.engine.assemble({ sessionId: "s1", sessionKey: KEY, messages });
    assert.deepEqual(keeper.kept, messages.map((x) => JSON.stringify(x)));
    return daemon.calls("assemble").at(-1)!.body.history.count;
  };
  assert.equal(await ask(m), 0);
  assert.equal(await ask([...m.slice(0, 3), user("other"), ...m.slice(4)]), 3);
  assert.equal(await ask(m.slice(0, 2)), 2);
  assert.equal(await ask([{ role: "compactionSummary", summary: "s", timestamp: 1 }, m[5]]), 0);
  assert.equal(await ask([]), 0);
  assert.equal(keeper.resends, 0);
});

test("a daemon that forgot gets everything once", async (t) => {
  const keeper = new Keeper();
  const daemon = await new FakeDaemon(keeper.handler).listen();
  t.after(() => daemon.close());
  const s = stage(daemon.dataDir);
  const messages = [user("a"), assistant("b")];
  const ask = (): Promise<any> => s.engine.assemble({ sessionId: "s1", sessionKey: KEY, messages });
  await ask();
  keeper.kept = [];
  const r = await ask();
  assert.equal(r.messages.length, 3);
  assert.equal(keeper.resends, 1);
  assert.deepEqual(daemon.calls("assemble").at(-1)!.body.messages, messages);
  await ask();
  assert.equal(keeper.resends, 1);
  assert.equal(daemon.calls("assemble").at(-1)!.body.history.count, 2);
});

test("lone surrogates, undefined fields and odd values survive", async (t) => {
  const keeper = new Keeper();
  const daemon = await new FakeDaemon(keeper.handler).listen();
  t.after(() => daemon.close());
  const s = stage(daemon.dataDir);
  const messages: any[] = [{ role: "user", content: "\ud800 \u0000 ]} \"", extra: undefined }, { role: "x", n: 1e308, deep: [null, { a: [] }] }];
  for (let i = 0; i < 2; i++) {
    const r = await s.engine.assemble({ sessionId: "s1", sessionKey: KEY, messages });
    assert.strictEqual(r.messages[0], messages[0]);
    assert.equal(r.messages.length, 3);
  }
  assert.equal(keeper.resends, 0);
});
