/**
 * One HTTP exchange with the daemon, and where the daemon is. The protocol's routes and bodies are in
 * client.ts; the life of the daemon is in daemon.ts.
 */

import fs from "node:fs/promises";
import http from "node:http";
import path from "node:path";

/** The version of the wire protocol this plugin speaks. */
export const PROTOCOL = 1;

const MAX_ANSWER = 64 * 1024 * 1024; // bytes

/** The daemon's limit. It hangs up on a longer body, which would look as if it were gone. */
const MAX_BODY = 64 * 1024 * 1024; // bytes

/** Where a daemon listens, as its daemon.json says. */
export interface Endpoint {
  readonly socket?: string;
  readonly host?: string;
  readonly port?: number;
  readonly token?: string;
  readonly pid?: number;
}

/** A failure of the daemon or on the way to it. `code` is the wire's, or one of this plugin's own. */
export class HarkError extends Error {
  readonly code: string;
  readonly remedy: string | undefined;

  constructor(code: string, message: string, remedy?: string) {
    super(remedy ? `${message}. ${remedy}` : message);
    this.name = "HarkError";
    this.code = code;
    this.remedy = remedy;
  }
}

export interface Exchange {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** How long the daemon may take, in milliseconds; what the signal enforces on this side. */
  readonly deadlineMs: number;
}

/** Reads daemon.json of a state directory; undefined where no daemon has left one. */
export async function readEndpoint(dataDir: string): Promise<Endpoint | undefined> {
  const file = path.join(dataDir, "daemon.json");
  let raw: unknown;
  try {
    raw = JSON.parse(await fs.readFile(file, "utf8"));
  } catch {
    return undefined; // absent, or damaged by a crash: as good as absent
  }
  if (typeof raw !== "object" || raw === null) return undefined;
  const { protocol, socket, address, token, pid } = raw as Record<string, unknown>;
  if (protocol !== PROTOCOL) {
    throw new HarkError(
      "protocol",
      `the Hark daemon in ${dataDir} speaks protocol ${String(protocol)}, this plugin speaks ${PROTOCOL}`,
      `Bring both to the same release, and end process ${String(pid)} so that the new one starts`,
    );
  }
  const who = typeof pid === "number" ? { pid } : {};
  if (typeof socket === "string") return { socket, ...who };
  const at = typeof address === "string" ? /^(.+):(\d+)$/.exec(address) : null;
  if (!at) return undefined;
  return { host: at[1]!, port: Number(at[2]), ...(typeof token === "string" ? { token } : {}), ...who };
}

/** Sends one request and reads the whole answer. Rejects with HarkError, or with the signal's reason. */
export function exchange(to: Endpoint, x: Exchange): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const body = x.body === undefined ? undefined : Buffer.from(x.body, "utf8");
    if (body && body.length > MAX_BODY) {
      return reject(new HarkError("too-large", `a call of ${Math.ceil(body.length / (1 << 20))} MiB is over the limit of the Hark daemon, 64 MiB`));
    }
    const headers: Record<string, string | number> = {
      "Hark-Protocol": PROTOCOL,
      "Hark-Deadline-Ms": Math.max(1, Math.round(x.deadlineMs)),
    };
    if (body) {
      headers["Content-Type"] = "application/json";
      headers["Content-Length"] = body.length;
    }
    if (to.token) headers.Authorization = `Bearer ${to.token}`;
    const where = to.socket === undefined ? { host: to.host, port: to.port } : { socketPath: to.socket };
    const request = http.request(
      { ...where, method: x.method, path: x.path, headers, signal: x.signal, agent: false },
      (response) => {
        const parts: Buffer[] = [];
        let size = 0;
        response.on("data", (part: Buffer) => {
          size += part.length;
          if (size > MAX_ANSWER) request.destroy(new HarkError("too-large", "the Hark daemon sent an answer over 64 MiB"));
          else parts.push(part);
        });
        response.on("error", fail);
        response.on("end", () => {
          try {
            resolve(understand(response.statusCode ?? 0, Buffer.concat(parts).toString("utf8")));
          } catch (error) {
            reject(error as Error);
          }
        });
      },
    );
    const fail = (error: Error): void => {
      reject(x.signal.aborted ? asError(x.signal.reason) : error);
    };
    request.on("error", fail);
    request.end(body);
  });
}

/** Whether an error means that nobody serves there any more, so that another daemon has to. */
export function isGone(error: unknown): boolean {
  if (error instanceof HarkError) return error.code === "shutting-down";
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ECONNREFUSED" || code === "ENOENT" || code === "ECONNRESET" || code === "EPIPE" || code === "ENOTSOCK";
}

function understand(status: number, text: string): unknown {
  let body: unknown;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch {
    throw new HarkError("bad-answer", `the Hark daemon answered ${status} with something that is no JSON`);
  }
  if (status >= 200 && status < 300) return body;
  const told = (body as { error?: { code?: unknown; message?: unknown; remedy?: unknown } } | null)?.error;
  throw new HarkError(
    typeof told?.code === "string" ? told.code : "internal",
    typeof told?.message === "string" ? told.message : `the Hark daemon answered ${status}`,
    typeof told?.remedy === "string" && told.remedy !== "" ? told.remedy : undefined,
  );
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new HarkError("aborted", "the call was cancelled");
}
