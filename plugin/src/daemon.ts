/**
 * The daemon behind the plugin: found by its daemon.json, started when none answers, asked again when
 * it went away, left alone for a moment when it hangs. Nothing happens before the first call.
 *
 * Processes share one daemon per state directory, so this never ends one that works. It replaces one
 * that was started with other settings or by another release of the plugin, and one that hangs for long.
 */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { constants as bits } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { findBinary } from "./binary.ts";
import type { Config } from "./config.ts";
import { startDeadline, within } from "./deadline.ts";
import { type Endpoint, exchange, HarkError, isGone, PROTOCOL, readEndpoint } from "./endpoint.ts";
import type { Logger } from "./host.ts";

export interface DaemonDeps {
  readonly config: Config;
  readonly rootDir: string | undefined;
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly patience?: Partial<Patience>;
}

/** How long the plugin waits for what, in milliseconds. */
export interface Patience {
  hello: number; // for the answer of GET /v1/hello, before a daemon counts as not there
  start: number; // for a started daemon to answer
  poll: number; // between two looks for a daemon that starts
  refused: number; // after a failed start, before the next try
  hung: number; // after a daemon did not answer, before it is asked again
  replace: number; // that a daemon does not answer, before it is ended
}

const patience: Patience = { hello: 500, start: 10_000, poll: 25, refused: 5000, hung: 3000, replace: 30_000 };

export interface Call {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
}

/** The variables of this process that the daemon is given; keys of model providers are not among them. */
const passedOn =
  /^(HARK_.*|PATH|HOME|USERPROFILE|XDG_.*|TMPDIR|TEMP|TMP|LANG|LC_.*|TZ|LOCALAPPDATA|APPDATA|SYSTEMROOT|SYSTEMDRIVE|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR))$/i;

export class Daemon {
  private readonly deps: DaemonDeps;
  private readonly wait: Patience;
  private endpoint: Endpoint | undefined;
  private lost: Endpoint | undefined; // the last one that went away
  private finding: Promise<Endpoint> | undefined;
  private refusal: { readonly error: Error; readonly until: number } | undefined;
  private silence: { readonly since: number; until: number } | undefined;
  private compared = false;

  constructor(deps: DaemonDeps) {
    this.deps = deps;
    this.wait = { ...patience, ...deps.patience };
  }

  /**
   * Sends one call and returns the answer's body. A daemon that is not there is started, one that
   * went away is replaced and asked once more. Rejects when `ms` have passed at the latest.
   */
  async call(c: Call, ms: number, what: string, signal?: AbortSignal): Promise<unknown> {
    const deadline = startDeadline(ms, what, signal);
    const watch = this.watch(ms);
    try {
      for (let again = false; ; again = true) {
        const to = await within(this.find(), deadline.signal);
        try {
          const answer = await exchange(to, { ...c, signal: deadline.signal, deadlineMs: deadline.left() });
          this.silence = undefined;
          return answer;
        } catch (error) {
          if (!isGone(error)) throw error;
          this.lost = to;
          if (this.endpoint === to) this.endpoint = undefined;
          if (again) throw error;
        }
      }
    } catch (error) {
      if (deadline.signal.aborted && !signal?.aborted) watch.verdict();
      throw error;
    } finally {
      watch.end();
      deadline.end();
    }
  }

  /** The daemon's place. At most one search or start runs in a process at a time. */
  private async find(): Promise<Endpoint> {
    if (this.silence && this.endpoint) await this.askTheSilent(this.endpoint, this.silence);
    if (this.endpoint) return this.endpoint;
    if (this.refusal && performance.now() < this.refusal.until) throw this.refusal.error;
    this.finding ??= this.connect().then(
      (found) => {
        this.endpoint = found;
        this.refusal = undefined;
        this.finding = undefined;
        return found;
      },
      (error: Error) => {
        this.refusal = { error, until: performance.now() + this.wait.refused };
        this.finding = undefined;
        throw error;
      },
    );
    return this.finding;
  }

  /**
   * Takes the daemon that daemon.json names at its word, because a call finds out anyway; one that was
   * just lost, or whose port may be somebody else's by now, has to say hello first.
   */
  private async connect(): Promise<Endpoint> {
    const found = await readEndpoint(this.deps.config.dataDir);
    if (!found) return await this.start();
    if (found.socket === undefined || same(found, this.lost)) {
      const answers = await this.hello(found);
      if (answers === "no") return await this.start();
      if (answers === "silent") {
        this.endpoint = found;
        this.hush();
        throw this.silent(found);
      }
    }
    return this.compared ? found : await this.compare(found);
  }

  /** Says hello; "silent" is a daemon that takes the connection and does not answer. */
  private async hello(to: Endpoint, ms = this.wait.hello): Promise<"yes" | "no" | "silent"> {
    const deadline = startDeadline(ms, "hello");
    try {
      const told = (await exchange(to, { method: "GET", path: "/v1/hello", signal: deadline.signal, deadlineMs: ms })) as {
        protocol?: unknown;
      };
      if (told.protocol !== PROTOCOL) {
        throw new HarkError("protocol", `the Hark daemon speaks protocol ${String(told.protocol)}, this plugin speaks ${PROTOCOL}`);
      }
      return "yes";
    } catch (error) {
      if (error instanceof HarkError && error.code === "protocol") throw error;
      return deadline.signal.aborted ? "silent" : "no";
    } finally {
      deadline.end();
    }
  }

  // A daemon that hangs

  /**
   * Looks, shortly before a call's time is up, whether the daemon still says hello. One that is only
   * slow keeps being used; one that is silent is not waited for again for a while.
   */
  private watch(ms: number): { verdict(): void; end(): void } {
    let looks = 0;
    let answered = false;
    let ticking: NodeJS.Timeout | undefined;
    const timer = setTimeout(() => {
      const to = this.endpoint;
      if (!to) return;
      ticking = setInterval(() => looks++, this.wait.hello / 5);
      void this.hello(to, this.wait.hello * 4).then(
        (answer) => (answered = answer !== "silent"),
        () => (answered = true),
      );
    }, Math.max(0, ms - this.wait.hello));
    return {
      verdict: () => {
        // Where fewer looks fit in, this process was busy, not the daemon.
        if (looks >= 3 && !answered) this.hush();
      },
      end: () => {
        clearTimeout(timer);
        clearInterval(ticking);
      },
    };
  }

  private hush(): void {
    const now = performance.now();
    this.silence = { since: this.silence?.since ?? now, until: now + this.wait.hung };
  }

  private async askTheSilent(to: Endpoint, silence: { since: number; until: number }): Promise<void> {
    if (performance.now() < silence.until) throw this.silent(to);
    if ((await this.hello(to)) !== "silent") {
      this.silence = undefined;
      return;
    }
    this.hush();
    if (performance.now() - silence.since < this.wait.replace) throw this.silent(to);
    if (!(await endHark(to.pid))) {
      if (process.platform === "linux") throw this.silent(to);
      // Elsewhere it cannot be told from here who that process is; "hark serve" knows, and ends the one it replaces.
      this.endpoint = await this.start();
      this.silence = undefined;
      return;
    }
    this.deps.log.warn(`hark: ended the daemon (process ${to.pid}), which had not answered for ${Math.round(this.wait.replace / 1000)} s`);
    this.silence = undefined;
    this.endpoint = undefined;
  }

  private silent(to: Endpoint): HarkError {
    return new HarkError("hung", `the Hark daemon${to.pid ? ` (process ${to.pid})` : ""} does not answer`, "It is asked again shortly");
  }

  // Starting

  /** The program that serves; rejects, with what to do, where there is none. */
  async program(): Promise<string> {
    const { config, env, rootDir } = this.deps;
    return await findBinary({ option: config.binary, rootDir, path: env.PATH ?? env.Path });
  }

  private async start(): Promise<Endpoint> {
    const { config } = this.deps;
    const binary = await this.program();
    await fs.mkdir(config.dataDir, { recursive: true, mode: 0o700 });
    const logFile = path.join(config.dataDir, "serve.log");
    const log = await openLog(logFile);
    let exit: string | undefined;
    let givenUp = Infinity;
    const child = spawn(binary, ["serve", "--data", config.dataDir, "--idle-exit", config.idleExit], {
      detached: true,
      windowsHide: true,
      cwd: config.dataDir,
      env: this.environment(),
      stdio: ["ignore", log.fd, log.fd],
    });
    // One that ends may have left the place to another that started at the same time, so look on a little.
    const ended = (how: string, grace: number): void => {
      exit ??= how;
      givenUp = Math.min(givenUp, performance.now() + grace);
    };
    child.on("error", (error) => ended(error.message, 0));
    child.on("exit", (code, signal) =>
      ended(signal ? `ended by ${signal}` : `ended with code ${code}`, this.wait.start / (code === 0 ? 4 : 20)),
    );
    child.unref();
    await log.close();

    const until = performance.now() + this.wait.start;
    for (;;) {
      const found = await readEndpoint(config.dataDir);
      if (found && (await this.hello(found)) === "yes") {
        if (found.pid === child.pid) await this.remember(found);
        this.compared = true;
        return found;
      }
      if (exit !== undefined && performance.now() > givenUp) {
        throw new HarkError("no-daemon", `"${binary} serve" ${exit}${await lastLine(logFile)}`, `See ${logFile}`);
      }
      if (performance.now() > until) {
        throw new HarkError("no-daemon", `"${binary} serve" did not answer within ${this.wait.start / 1000} s`, `See ${logFile}`);
      }
      await pause(this.wait.poll);
    }
  }

  /** What the program is told through its environment: the plugin's options, and no key of the host's. */
  environment(): Record<string, string> {
    const out: Record<string, string> = {};
    for (const [name, value] of Object.entries(this.deps.env)) {
      if (value !== undefined && passedOn.test(name)) out[name] = value;
    }
    delete out.HARK_DATA;
    return { ...out, ...this.deps.config.settings };
  }

  // Settings of a running daemon

  /** Restarts a daemon that a plugin started with other settings; once per registration. */
  private async compare(found: Endpoint): Promise<Endpoint> {
    this.compared = true;
    const note = await readNote(this.noteFile());
    if (!note || note.pid !== found.pid || note.settings === (await this.fingerprint())) return found;
    this.deps.log.info("hark: the settings or the release changed; the daemon is started again");
    try {
      const signal = AbortSignal.timeout(this.wait.hello);
      await exchange(found, { method: "POST", path: "/v1/shutdown", body: "{}", signal, deadlineMs: this.wait.hello });
    } catch {
      return found; // it stays, with the settings it has
    }
    // Out of sight is enough: the next one waits until the last has let go of everything.
    const until = performance.now() + this.wait.start;
    for (let seen: Endpoint | undefined = found; seen && same(seen, found) && isAlive(found.pid); ) {
      if (performance.now() > until) return found;
      await pause(this.wait.poll);
      seen = await readEndpoint(this.deps.config.dataDir);
    }
    return await this.start();
  }

  private async remember(found: Endpoint): Promise<void> {
    const note = JSON.stringify({ pid: found.pid, settings: await this.fingerprint() });
    await fs.writeFile(this.noteFile(), note + "\n", { mode: 0o600 }).catch(() => undefined);
  }

  private noteFile(): string {
    return path.join(this.deps.config.dataDir, "plugin.json");
  }

  private async fingerprint(): Promise<string> {
    const { config, version } = this.deps;
    const size = await this.program().then(
      async (binary) => (await fs.stat(binary)).size,
      () => 0,
    );
    const settings = Object.entries(config.settings).sort(([a], [b]) => (a < b ? -1 : 1));
    return createHash("sha256").update(JSON.stringify([version, size, config.idleExit, settings])).digest("hex");
  }
}

function same(a: Endpoint, b: Endpoint | undefined): boolean {
  return b !== undefined && a.pid === b.pid && a.socket === b.socket && a.port === b.port;
}

/** Opens the daemon's output, for appending; what is over a megabyte is started anew. */
async function openLog(file: string): Promise<fs.FileHandle> {
  const size = await fs.stat(file).then((s) => s.size, () => 0);
  const flags = bits.O_WRONLY | bits.O_CREAT | bits.O_APPEND | (size > 1 << 20 ? bits.O_TRUNC : 0);
  return await fs.open(file, flags, 0o600);
}

async function lastLine(file: string): Promise<string> {
  const text = await fs.readFile(file, "utf8").catch(() => "");
  const line = text.trimEnd().split("\n").at(-1);
  return line ? `: ${line.slice(0, 300)}` : "";
}

async function readNote(file: string): Promise<{ pid: unknown; settings: unknown } | undefined> {
  try {
    const note: unknown = JSON.parse(await fs.readFile(file, "utf8"));
    return typeof note === "object" && note !== null ? (note as { pid: unknown; settings: unknown }) : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code === "EPERM";
  }
}

/** Ends a process for good, if it can be told to be a Hark daemon. */
async function endHark(pid: number | undefined): Promise<boolean> {
  if (pid === undefined) return false;
  const command = await fs.readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  const [program = "", verb] = command.split("\0");
  if (path.basename(program) !== "hark" || verb !== "serve") return false;
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}
