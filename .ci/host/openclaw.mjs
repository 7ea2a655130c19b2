// Drives an OpenClaw of its own: a home, a state directory and a workspace in a temporary folder, the
// scripted model, one-shot turns and a gateway. Ends only what it started.

import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";

const TOKEN = "test-host";

export class OpenClaw {
  children = new Set();

  constructor({ dir, entry, model }) {
    this.dir = dir;
    this.entry = entry;
    this.state = path.join(dir, "state");
    this.config = path.join(this.state, "openclaw.json");
    this.log = path.join(dir, "openclaw.log");
    this.data = path.join(this.state, "hark"); // where the plugin keeps its data by default here
    for (const sub of ["home", "state", "ws-main", "ws-other"]) fs.mkdirSync(path.join(dir, sub), { recursive: true });
    fs.writeFileSync(path.join(dir, "ws-main", "shed.txt"), "The shed key hangs behind the blue door.\n");
    this.env = {
      PATH: process.env.PATH, LANG: process.env.LANG ?? "C.UTF-8", TZ: "UTC",
      HOME: path.join(dir, "home"), OPENCLAW_STATE_DIR: this.state, OPENCLAW_CONFIG_PATH: this.config,
      NODE_COMPILE_CACHE: path.join(path.dirname(entry), "../../../compile-cache"),
      NO_COLOR: "1", OPENCLAW_DISABLE_BONJOUR: "1", OPENCLAW_SKIP_CRON: "1",
    };
    this.modelUrl = model.url;
  }

  async configure() {
    this.port = await freePort();
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const config = {
      gateway: {
        mode: "local", bind: "loopback", port: this.port, auth: { mode: "token", token: TOKEN }, controlUi: { enabled: false },
        http: { endpoints: { chatCompletions: { enabled: true } } },
      },
      logging: { file: this.log },
      cron: { enabled: false },
      agents: {
        ownership: "explicit",
        defaults: { systemAgent: { agentId: "main" }, model: { primary: "fake/scripted" }, skipBootstrap: true, skills: [] },
        entries: { main: { workspace: path.join(this.dir, "ws-main") }, other: { workspace: path.join(this.dir, "ws-other") } },
      },
      tools: { toolSearch: false, allow: ["read", "memory_search", "memory_get", "hark_search", "hark_open", "hark_forget", "sessions_spawn", "subagents"] },
      memory: { search: { provider: "none" } }, // memory-core finds by words; no embedder is looked for
      models: {
        mode: "replace",
        providers: {
          fake: {
            baseUrl: this.modelUrl, apiKey: "sk-scripted-secret", api: "openai-completions",
            models: [{ id: "scripted", name: "Scripted", reasoning: false, input: ["text"], cost, contextWindow: 128000, maxTokens: 2048 }],
          },
        },
      },
    };
    fs.writeFileSync(this.config, JSON.stringify(config, null, 2));
  }

  /** Runs a program to its end; rejects when it fails, with the end of what it said. */
  async run(program, args, { seconds = 240, env = {} } = {}) {
    const child = spawn(program, args, { env: { ...this.env, ...env }, cwd: this.dir, stdio: ["ignore", "pipe", "pipe"] });
    this.children.add(child);
    let out = "", err = "";
    child.stdout.on("data", (d) => (out += d));
    child.stderr.on("data", (d) => (err += d));
    const timer = setTimeout(() => child.kill("SIGKILL"), seconds * 1000);
    const code = await new Promise((resolve) => child.on("close", resolve));
    clearTimeout(timer);
    this.children.delete(child);
    fs.appendFileSync(path.join(this.dir, "cli.log"), `$ ${path.basename(program)} ${args.join(" ")}\n${out}${err}(${code})\n`);
    if (code !== 0) throw new Error(`${path.basename(program)} ${args.slice(0, 4).join(" ")} ended with ${code}: ${(err || out).slice(-800)}`);
    return out;
  }

  openclaw(args, options) {
    return this.run(process.execPath, [this.entry, ...args], options);
  }

  /** One turn in a process of its own. */
  async oneShot(session, message, agent = "main") {
    const out = await this.openclaw(["agent", "--local", "--agent", agent, "--session-id", session, "--message", message, "--json"]);
    return /"finalAssistantVisibleText": "((?:[^"\\]|\\.)*)"/.exec(out)?.[1] ?? "";
  }

  async startGateway(seconds = 240) {
    const log = fs.openSync(path.join(this.dir, "gateway.log"), "a");
    const child = spawn(process.execPath, [this.entry, "gateway", "run", "--port", String(this.port), "--bind", "loopback"], {
      env: this.env, cwd: this.dir, stdio: ["ignore", log, log],
    });
    fs.closeSync(log);
    this.children.add(child);
    this.gateway = child;
    for (let i = 0; i < seconds * 4; i++) {
      if (/\[gateway\] ready/.test(this.gatewayLog())) return;
      if (child.exitCode !== null) throw new Error(`the gateway ended: ${this.gatewayLog().slice(-800)}`);
      await pause(250);
    }
    throw new Error("the gateway did not get ready");
  }

  async stopGateway() {
    const child = this.gateway;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.on("close", resolve));
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await ended;
    clearTimeout(timer);
    this.children.delete(child);
  }

  gatewayLog() {
    const file = path.join(this.dir, "gateway.log");
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
  }

  /** One turn through the gateway; returns the reply. */
  async turn(session, message, agent = "main") {
    const response = await fetch(`http://127.0.0.1:${this.port}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${TOKEN}`, "content-type": "application/json",
        "x-openclaw-session-key": session.includes(":") ? session : `agent:${agent}:explicit:${session}`,
      },
      body: JSON.stringify({ model: `openclaw/${agent}`, messages: [{ role: "user", content: message }] }),
      signal: AbortSignal.timeout(180_000),
    });
    const body = await response.json();
    if (!response.ok) throw new Error(`the gateway answered ${response.status}: ${JSON.stringify(body).slice(0, 400)}`);
    return body.choices?.[0]?.message?.content ?? "";
  }

  /** The process of the daemon behind the plugin. */
  daemonPid() {
    return JSON.parse(fs.readFileSync(path.join(this.data, "daemon.json"), "utf8")).pid;
  }

  async end() {
    await this.stopGateway();
    for (const child of this.children) child.kill("SIGKILL");
    try {
      const pid = this.daemonPid();
      process.kill(pid, "SIGCONT");
      process.kill(pid, "SIGTERM");
    } catch {
      // it ended by itself
    }
  }

  /** Everything the host said. */
  everythingLogged() {
    return ["openclaw.log", "gateway.log", "cli.log"]
      .map((f) => path.join(this.dir, f))
      .filter((f) => fs.existsSync(f))
      .map((f) => fs.readFileSync(f, "utf8"))
      .join("\n");
  }
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
