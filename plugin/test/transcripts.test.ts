/**
 * Plays the server of the wire transcripts, which the Go side plays the client of, and drives the
 * plugin's client through them: what it sends has to be what stands there, and what it makes of the
 * answers what they mean.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Client } from "../src/client.ts";
import { Daemon } from "../src/daemon.ts";
import { type Endpoint, exchange, HarkError } from "../src/endpoint.ts";
import { rebuild } from "../src/rebuild.ts";
import { FakeDaemon, type Answer, type Seen } from "./fake-daemon.ts";
import { stage } from "./play.ts";
import { filled, fits, parse, type Step } from "./txtar.ts";

const dir = path.resolve("../engine/wire/testdata");
const files = fs.existsSync(dir) ? fs.readdirSync(dir).filter((f) => f.endsWith(".txtar")) : [];

test("there are transcripts", () => assert.ok(files.length > 0, dir));

for (const file of files) {
  test(`transcript ${file}`, async (t) => {
    const { steps, server } = parse(fs.readFileSync(path.join(dir, file), "utf8"));
    const seen: Seen[] = [];
    let expected: Step[] = [];
    const daemon = await new FakeDaemon((s): Answer => {
      seen.push(s);
      const step = expected.shift();
      assert.ok(step, `a request more than the transcript has: ${s.path}`);
      const method = step.request.head.split("/").at(-1)!;
      if (server.hang?.includes(method) && step.response.head !== "200") return "hang";
      return { status: Number(step.response.head), body: filled(JSON.parse(step.response.body)) };
    }).listen();
    t.after(() => daemon.close());
    const { shared } = stage(daemon.dataDir);
    const d = new Daemon({ config: shared.config, rootDir: undefined, version: "t", env: {}, log: shared.log });
    const client = new Client(d);
    const to: Endpoint = { socket: path.join(daemon.dataDir, "hark.sock") };

    let known: any[] = []; // the messages of the last assemble
    for (let i = 0; i < steps.length; i++) {
      const step = steps[i]!;
      const [verb, target] = step.request.head.split(" ") as [string, string];
      const found = /^\/v1\/agents\/([^/]+)\/([A-Za-z]+)/.exec(target);
      const body = readable(step.request.body);
      const code = step.response.head === "200" ? undefined : JSON.parse(step.response.body).error.code;
      const resent = code === "resend" && steps[i + 1] !== undefined;
      expected = resent ? [step, steps[++i]!] : [step];
      const wanted = steps[i]!.response;
      seen.length = 0;
      const ms = Number(step.request.headers["hark-deadline-ms"]) || 2000;

      if (!found || body === undefined || !(code === undefined || code === "conflict" || code === "deadline" || resent)) {
        if (target === "/v1/hello") continue; // the fake's own
        // What this client never sends: only how the answer is understood.
        const signal = AbortSignal.timeout(2000);
        await outcome(exchange(to, { method: verb as "GET", path: target, ...(verb === "POST" ? { body: "{}" } : {}), signal, deadlineMs: ms }), wanted.head, wanted.body);
        continue;
      }
      const agent = decodeURIComponent(found[1]!);
      const method = found[2]!;
      if (verb === "GET") {
        const q = new URL(target, "http://x").searchParams;
        const cursor = await client.cursor(agent, { key: q.get("session")!, id: q.get("sessionId")! }, ms);
        assert.equal(cursor, JSON.parse(wanted.body).cursor);
        assert.equal(seen[0]!.path, target);
      } else if (method === "assemble") {
        const { messages, history, ...params } = readable(steps[i]!.request.body);
        const full: any[] = messages ?? [...known.slice(0, history.count), ...history.messages];
        const answer = client.assemble(agent, params.sessionKey ?? params.sessionId, params, full, ms);
        await outcome(answer, wanted.head, wanted.body);
        if (wanted.head === "200") {
          const rebuilt = rebuild(full, await answer);
          for (const m of rebuilt) assert.ok(full.includes(m) || m.customType === "hark-recall");
        }
        checkAssemble(seen, { messages: full, ...params }, known);
        if (wanted.head === "200") known = full;
      } else {
        await outcome(client.call(agent, method, body, ms), wanted.head, wanted.body);
        assert.equal(seen[0]!.path, target);
        fits(seen[0]!.body, body);
        if (method === "compacted") known = [];
      }
      assert.equal(seen[0]!.headers["hark-protocol"], "1");
      assert.equal(expected.length, 0, "a request less than the transcript has");
    }
  });
}

/** What was sent of an assemble: all parameters, and of the messages only what the server had not. */
function checkAssemble(seen: Seen[], wanted: any, known: any[]): void {
  const { messages, ...params } = wanted;
  for (const s of seen) {
    const { history, messages: all, ...sent } = s.body;
    fits(sent, params);
    if (all) assert.deepEqual(all, messages);
    else assert.deepEqual([...known.slice(0, history.count), ...history.messages].slice(history.count), messages.slice(history.count));
  }
}

async function outcome(call: Promise<unknown>, status: string, body: string): Promise<void> {
  const wanted = JSON.parse(body);
  if (status.startsWith("2")) return fits(await call, wanted);
  await assert.rejects(call, (error: unknown) => {
    assert.ok(error instanceof HarkError, String(error));
    assert.equal(error.code, wanted.error.code);
    if (wanted.error.code !== "deadline" && wanted.error.remedy) assert.ok(error.message.includes(wanted.error.remedy) || /^<any/.test(wanted.error.remedy));
    return true;
  });
}

function readable(body: string): any {
  try {
    return filled(JSON.parse(body === "" ? "{}" : body));
  } catch {
    return undefined;
  }
}
