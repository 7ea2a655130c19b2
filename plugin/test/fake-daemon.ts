/** A daemon for tests: the wire protocol over a real Unix socket, with answers the test chooses. */

import fs from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";

export interface Seen {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  raw: string;
  body: any;
  /** Settles when the client closed the connection before it was answered. */
  aborted: Promise<void>;
}

export type Answer = { status?: number; body: unknown } | "hang" | "drop";
export type Handler = (seen: Seen) => Answer | Promise<Answer>;

const temporary: string[] = [];
process.on("exit", () => {
  for (const dir of temporary) fs.rmSync(dir, { recursive: true, force: true });
});

export function tempDir(): string {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "hark-test-"));
  temporary.push(dir);
  return dir;
}

export class FakeDaemon {
  readonly dataDir: string;
  readonly seen: Seen[] = [];
  handler: Handler;
  hello: Handler = () => ({ body: { protocol: 1, version: "test", pid: process.pid, uptimeMs: 1, agents: [], idleExitMs: 1 } });
  private server: http.Server | undefined;

  constructor(handler: Handler, dataDir = tempDir()) {
    this.handler = handler;
    this.dataDir = dataDir;
  }

  async listen(over: "socket" | "tcp" = "socket", token?: string): Promise<this> {
    this.server = http.createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => void this.answer(request, response, Buffer.concat(parts).toString("utf8")));
    });
    const at = over === "socket" ? path.join(this.dataDir, "hark.sock") : { port: 0, host: "127.0.0.1" };
    await new Promise<void>((resolve) => this.server!.listen(at as never, resolve));
    const place =
      over === "socket" ? { socket: at } : { address: `127.0.0.1:${(this.server.address() as AddressInfo).port}`, token };
    this.write({ protocol: 1, version: "test", pid: process.pid, ...place });
    return this;
  }

  write(place: object): void {
    fs.writeFileSync(path.join(this.dataDir, "daemon.json"), JSON.stringify(place));
  }

  async close(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise<void>((resolve) => (this.server ? this.server.close(() => resolve()) : resolve()));
  }

  /** The lifecycle calls seen, by method. */
  calls(method?: string): Seen[] {
    return this.seen.filter((s) => s.path.startsWith("/v1/agents/") && (!method || s.path.split("?")[0]!.endsWith("/" + method)));
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse, raw: string): Promise<void> {
    const aborted = new Promise<void>((resolve) => response.on("close", () => response.writableEnded || resolve()));
    const seen: Seen = {
      method: request.method!, path: request.url!, headers: request.headers, raw, aborted,
      body: raw === "" ? undefined : JSON.parse(raw),
    };
    this.seen.push(seen);
    const answer = await (seen.path === "/v1/hello" ? this.hello(seen) : this.handler(seen));
    if (answer === "hang") return;
    if (answer === "drop") return void request.socket.destroy();
    response.writeHead(answer.status ?? 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer.body));
  }
}

/** What a daemon answers that keeps everything and recalls one thing. */
export function usual(seen: Seen): Answer {
  const method = seen.path.split("?")[0]!.split("/").at(-1);
  switch (method) {
    case "cursor":
      return { body: { cursor: "" } };
    case "bootstrap":
      return { body: { bootstrapped: true, importedMessages: seen.body.history?.length ?? 0 } };
    case "commitTurn":
      return { body: { status: "committed" } };
    case "ingest":
      return { body: { ingested: true } };
    case "ingestBatch":
      return { body: { ingestedCount: seen.body.messages.length } };
    case "prepareSubagentSpawn":
      return { body: { prepared: true, childSessionKey: seen.body.childSessionKey } };
    case "assemble": {
      const n = seen.body.messages?.length ?? seen.body.history.count + seen.body.history.messages.length;
      return { body: assembled(n, seen.body.memoryPrompt) };
    }
    default:
      return { body: {} };
  }
}

export function assembled(n: number, memory?: string): object {
  return {
    kept: n === 0 ? [] : [[0, n]],
    insert: [{ position: n, message: { role: "custom", customType: "hark-recall", content: "recalled", display: false, timestamp: 1 } }],
    estimatedTokens: 42,
    systemPromptAddition: [memory, "## Hark"].filter(Boolean).join("\n\n"),
  };
}
