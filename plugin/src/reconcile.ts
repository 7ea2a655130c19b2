/**
 * Catching up with the host's transcript. Not every row of it comes with a turn: what was said before
 * Hark was installed, turns of another engine, failed turns and announcements never do. So every
 * bootstrap reads on from where the last one stopped, page by page, as long as it may take.
 *
 * A page's cursor is stored by the daemon with the page, so a process can end at any point: the next
 * turn goes on there, and rows that come twice are stored once.
 */

import type { Client } from "./client.ts";
import { within } from "./deadline.ts";
import { HarkError } from "./endpoint.ts";
import type { HostFunctions, TranscriptEntry } from "./host.ts";

const PAGE_MESSAGES = 200;
const PAGE_BYTES = 2 * 1024 * 1024;
const LEAST = 250; // milliseconds, for a page that was begun
const FIRST_READ = 2000; // milliseconds at least for the host's first page, so that every turn gets further
const HOST_MOST_BYTES = 64 * 1024 * 1024;

const OVER = "the time for catching up was over; the next turn goes on";

export interface Session {
  readonly agent: string;
  readonly key: string;
  readonly id: string;
}

export interface CaughtUp {
  readonly imported: number;
  /** Why there may be more; undefined when everything was read. */
  readonly pending?: string;
}

/**
 * Sends what the daemon has not seen of a session. `params` is the bootstrap call's own, which goes
 * along with every page, and once without a page when there is nothing new. `ms` bounds the whole, but
 * one page always gets all of it, so that every turn gets further; `askMs` bounds asking where to begin.
 */
export async function reconcile(
  host: Pick<HostFunctions, "transcript">,
  client: Client,
  session: Session,
  params: object,
  limits: { ms: number; askMs: number },
  signal?: AbortSignal,
): Promise<CaughtUp> {
  const until = performance.now() + limits.ms;
  let posted = false;
  const post = async (extra: object): Promise<unknown> => {
    const ms = posted ? Math.max(LEAST, until - performance.now()) : limits.ms;
    return await client.call(session.agent, "bootstrap", { ...params, ...extra }, ms, signal);
  };

  let cursor = await client.cursor(session.agent, session, limits.askMs, signal);
  let imported = 0;
  let pending: string | undefined;
  let bytes = PAGE_BYTES;
  for (let resets = 0; ; ) {
    const read = await readPage(host, session, cursor, bytes, Math.max(posted ? LEAST : FIRST_READ, until - performance.now()), signal);
    if (read.kind === "reset" && resets++ < 2) {
      cursor = read.cursor;
      continue;
    }
    if (read.kind !== "page") {
      pending = read.kind === "missing" || read.kind === "fenced" ? undefined : read.kind === "late" ? OVER : describe(read);
      break;
    }
    if (read.entries.length > 0) {
      try {
        // The last page tells where the conversation ends: what lies beyond it was cut off.
        imported += importedBy(await post({ history: read.entries.map(outgoingEntry), cursor: read.cursor, complete: !read.hasMore }));
      } catch (error) {
        if (!posted || !(error instanceof HarkError) || error.code !== "deadline") throw error;
        pending = OVER;
        break;
      }
      posted = true;
      cursor = read.cursor;
      bytes = PAGE_BYTES;
    }
    if (!read.hasMore) break;
    if (read.entries.length === 0) {
      // One message is larger than a page.
      if (bytes >= HOST_MOST_BYTES || !read.requiredBytes || read.requiredBytes > HOST_MOST_BYTES) {
        pending = "a message is too large for the host's transcript cursor";
        break;
      }
      bytes = Math.min(HOST_MOST_BYTES, read.requiredBytes + 1024);
    }
    if (performance.now() >= until) {
      pending = OVER;
      break;
    }
  }
  if (!posted) await post({});
  return pending === undefined ? { imported } : { imported, pending };
}

type Page = Awaited<ReturnType<HostFunctions["transcript"]>> | { readonly kind: "fenced" } | { readonly kind: "failed"; readonly reason: string } | { readonly kind: "late" };

async function readPage(
  host: Pick<HostFunctions, "transcript">,
  s: Session,
  cursor: string,
  maxBytes: number,
  ms: number,
  signal?: AbortSignal,
): Promise<Page> {
  const limit = AbortSignal.timeout(Math.ceil(ms));
  try {
    // The host sets no deadline on its cursor: one that hangs would hang the turn.
    const read = host.transcript({
      agentId: s.agent,
      sessionKey: s.key,
      sessionId: s.id,
      ...(cursor === "" ? {} : { cursor }),
      maxMessages: PAGE_MESSAGES,
      maxBytes,
    });
    return await within(read, signal ? AbortSignal.any([signal, limit]) : limit);
  } catch (error) {
    if (limit.aborted) return { kind: "late" };
    // A retried turn may find the cursor past the fence of its own message: then nothing is new.
    if (error instanceof Error && (error.name === "SessionTranscriptReadFenceError" || error.constructor.name === "SessionTranscriptReadFenceError")) {
      return { kind: "fenced" };
    }
    return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
  }
}

function describe(read: { kind: string; reason?: string }): string {
  return `the host's transcript is ${read.kind === "reset" ? "being rewritten" : "not readable"}${read.reason ? `: ${read.reason}` : ""}`;
}

function outgoingEntry(e: TranscriptEntry): object {
  return {
    entryId: e.entryId,
    ...(e.parentId == null ? {} : { parentId: e.parentId }),
    seq: e.seq,
    role: e.role,
    createdAt: e.createdAt,
    ...(e.idempotencyKey === undefined ? {} : { idempotencyKey: e.idempotencyKey }),
    message: e.message,
  };
}

function importedBy(answer: unknown): number {
  const n = (answer as { importedMessages?: unknown } | null)?.importedMessages;
  return typeof n === "number" ? n : 0;
}
