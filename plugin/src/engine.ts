/**
 * The context engine as the host sees it. It translates between the host and the daemon and decides
 * nothing, except what happens when the daemon does not answer: the turn goes on with the host's own
 * messages, and what could not be stored stays with the host.
 *
 * The host makes an instance for every turn and several at once; what outlives one is in `Shared`.
 */

import type { AssembleAnswer, Client } from "./client.ts";
import type { Config } from "./config.ts";
import { HarkError } from "./endpoint.ts";
import type * as host from "./host.ts";
import type { Ledger } from "./ledger.ts";
import { memoryPrompt } from "./memory.ts";
import { agentOf, isInternal, keyOf, outgoing } from "./params.ts";
import { estimateTokens, rebuild, withoutRecall } from "./rebuild.ts";
import { reconcile } from "./reconcile.ts";

export const ENGINE_ID = "hark";

/** The least that storing one page of older messages is given, whatever the option says. */
const LEAST_PAGE_MS = 500;

/** What the instances of one registration have in common. */
export interface Shared<Compact = unknown> {
  readonly config: Config;
  readonly version: string;
  readonly client: Client;
  readonly functions: host.HostFunctions;
  /** The host's own compaction, which it recognises by identity. */
  readonly compact: Compact;
  readonly log: host.Logger;
  readonly ledger: Ledger;
  /** The last system prompt addition of a session with the memory text it was made from. */
  readonly additions: Map<string, { memory: string | undefined; addition: string }>;
  /** The compaction summary that a session last began with; "" for none. */
  readonly summaries: Map<string, string>;
}

const unchanged = { changed: false, bytesFreed: 0, rewrittenEntries: 0 } as const;

export function createEngine<Compact>(shared: Shared<Compact>, ctx: host.FactoryContext) {
  const { config, client, functions, log, ledger } = shared;
  const turn = new AbortController(); // ends with the instance: work for a prompt nobody waits for

  /** Logs why a call was not served; the message never holds conversation text. */
  const degraded = (what: string, error: unknown): void => {
    if (turn.signal.aborted && error === turn.signal.reason) return; // nobody waits any more
    log.warn(`hark: ${what}: ${error instanceof Error ? error.message : String(error)}`);
  };

  async function bootstrap(p: host.BootstrapParams): Promise<host.BootstrapResult> {
    if (isInternal(p)) return { bootstrapped: true, importedMessages: 0, reason: "a run of the host's own" };
    const agent = agentOf(p, ctx);
    const key = keyOf(p);
    try {
      if (key === undefined || config.catchUpMs <= 0) {
        await client.call(agent, "bootstrap", outgoing(p), config.deadlineMs, turn.signal);
        return { bootstrapped: true, importedMessages: 0 };
      }
      const limits = { ms: Math.max(config.catchUpMs, LEAST_PAGE_MS), askMs: config.deadlineMs };
      const done = await reconcile(functions, client, { agent, key, id: p.sessionId }, outgoing(p), limits, turn.signal);
      if (done.pending) log.info(`hark: stored ${done.imported} earlier messages of a session so far: ${done.pending}`);
      return { bootstrapped: true, importedMessages: done.imported, ...(done.pending ? { reason: done.pending } : {}) };
    } catch (error) {
      degraded("the session's history was not caught up with", error);
      return { bootstrapped: false, importedMessages: 0, reason: messageOf(error) };
    }
  }

  async function maintain(p: host.SessionParams): Promise<host.MaintainResult> {
    if (isInternal(p)) return { ...unchanged, reason: "a run of the host's own" };
    try {
      const done = (await client.call(agentOf(p, ctx), "maintain", outgoing(p), config.deadlineMs, p.abortSignal)) as {
        reason?: unknown;
      };
      return { ...unchanged, ...(typeof done.reason === "string" ? { reason: done.reason } : {}) };
    } catch (error) {
      degraded("maintenance was put off", error);
      return { ...unchanged, reason: messageOf(error) };
    }
  }

  // The three ways in which hosts without commitTurn store. They do not throw, because the host would
  // then give the engine up for good; what is missed here comes with the next bootstrap.

  async function ingest(p: host.IngestParams): Promise<{ ingested: boolean }> {
    const done = await store("a message was not stored yet", "ingest", p);
    return { ingested: (done as { ingested?: unknown } | undefined)?.ingested === true };
  }

  async function ingestBatch(p: host.IngestBatchParams): Promise<{ ingestedCount: number }> {
    const done = await store("messages were not stored yet", "ingestBatch", p);
    const n = (done as { ingestedCount?: unknown } | undefined)?.ingestedCount;
    return { ingestedCount: typeof n === "number" ? n : 0 };
  }

  async function afterTurn(p: host.AfterTurnParams): Promise<void> {
    await store("a turn was not stored yet", "afterTurn", p);
  }

  async function store(otherwise: string, method: string, p: host.SessionParams): Promise<unknown> {
    if (isInternal(p)) return undefined;
    try {
      const done = await client.call(agentOf(p, ctx), method, outgoing(p), config.commitDeadlineMs);
      ledger.committed(agentOf(p, ctx));
      return done;
    } catch (error) {
      degraded(otherwise, error);
      return undefined;
    }
  }

  /**
   * Throws while the turn is not stored: the host then keeps it and brings it again under the same key
   * before the session's next turn, so that nothing is lost and nothing is stored twice.
   */
  async function commitTurn(p: host.CommitTurnParams): Promise<{ status: "committed" | "duplicate" }> {
    if (isInternal(p)) return { status: "committed" };
    try {
      const done = (await client.call(agentOf(p, ctx), "commitTurn", outgoing(p), config.commitDeadlineMs)) as {
        status?: unknown;
      };
      ledger.committed(agentOf(p, ctx));
      return { status: done.status === "duplicate" ? "duplicate" : "committed" };
    } catch (error) {
      // Bringing it again cannot help here, and would take the session away from Hark for ever. The
      // turn's rows are in the host's transcript: the next bootstrap reads them there.
      if (error instanceof HarkError && ["conflict", "bad-request", "too-large"].includes(error.code)) {
        degraded("a turn was refused and is left to the next catching up", error);
        return { status: "duplicate" };
      }
      degraded("a turn could not be stored and stays queued with the host", error);
      ledger.failed(agentOf(p, ctx), messageOf(error));
      throw error;
    }
  }

  async function assemble(p: host.AssembleParams): Promise<host.AssembleResult> {
    let memory: string | undefined;
    let place = "";
    try {
      memory = memoryPrompt(functions, p, log);
      place = `${agentOf(p, ctx)}\n${keyOf(p) ?? p.sessionId}`;
      if (isInternal(p)) return passThrough(p, memory);
      const answer = await ask(p, memory, place);
      const messages = rebuild(p.messages, answer);
      ledger.served(agentOf(p, ctx));
      const addition = answer.systemPromptAddition ?? memory;
      if (addition !== undefined) remember(shared.additions, place, { memory, addition });
      return {
        messages,
        estimatedTokens: Number.isFinite(answer.estimatedTokens) ? answer.estimatedTokens : estimateTokens(messages),
        ...(answer.promptAuthority ? { promptAuthority: answer.promptAuthority } : {}),
        ...(addition ? { systemPromptAddition: addition } : {}),
        ...(answer.contextProjection ? { contextProjection: answer.contextProjection } : {}),
      };
    } catch (error) {
      degraded("the turn goes on without recall", error);
      if (!turn.signal.aborted && place !== "") ledger.failed(agentOf(p, ctx), messageOf(error));
      // The addition of the session's last turn holds the same memory text; repeating it keeps the
      // model's prompt cache valid over a turn without Hark.
      const last = shared.additions.get(place);
      return passThrough(p, last && last.memory === memory ? last.addition : memory);
    }
  }

  async function ask(p: host.AssembleParams, memory: string | undefined, place: string): Promise<AssembleAnswer> {
    const until = performance.now() + config.deadlineMs;
    const agent = agentOf(p, ctx);
    await tellCompaction(p, agent, place);
    const { messages, availableTools, ...rest } = outgoing(p) as host.AssembleParams;
    const params = {
      ...rest,
      ...(availableTools ? { availableTools: [...availableTools] } : {}),
      ...(memory === undefined ? {} : { memoryPrompt: memory }),
    };
    const left = Math.max(1, until - performance.now());
    const answer = await client.assemble(agent, keyOf(p) ?? p.sessionId, params, messages, left, turn.signal);
    return config.recall ? answer : withoutRecall(answer);
  }

  /**
   * Tells the daemon when the session begins with another compaction summary than before. The host
   * compacts through a function that Hark must not wrap, so this is where it shows.
   */
  async function tellCompaction(p: host.AssembleParams, agent: string, place: string): Promise<void> {
    const first = p.messages.find((m) => m.role === "compactionSummary");
    const summary = first ? JSON.stringify([first.timestamp, first.firstKeptEntryId, first.tokensBefore]) : "";
    const before = shared.summaries.get(place);
    remember(shared.summaries, place, summary);
    if (before === undefined || before === summary || summary === "") return;
    const told = { sessionId: p.sessionId, ...(p.sessionKey === undefined ? {} : { sessionKey: p.sessionKey }) };
    await client.call(agent, "compacted", told, config.deadlineMs / 3, turn.signal).catch((error: unknown) => {
      shared.summaries.set(place, before); // the next turn tells it
      degraded("the daemon was not told of a compaction", error);
    });
  }

  async function prepareSubagentSpawn(p: host.SpawnParams): Promise<{ rollback(): Promise<void> } | undefined> {
    const agent = agentOf({ sessionKey: p.childSessionKey }, ctx);
    try {
      const { prepared } = (await client.call(agent, "prepareSubagentSpawn", outgoing(p), config.deadlineMs)) as {
        prepared?: unknown;
      };
      if (prepared === false) return undefined;
    } catch (error) {
      // A child that Hark was not told of recalls nothing, which is the safe side.
      degraded("a subagent starts without shared recall", error);
      return undefined;
    }
    return {
      rollback: async () => {
        const child = { childSessionKey: p.childSessionKey };
        await client
          .call(agent, "rollbackSubagentSpawn", child, config.deadlineMs)
          .catch((error: unknown) => degraded("a subagent that did not start is forgotten when its time is over", error));
      },
    };
  }

  async function onSubagentEnded(p: host.SubagentEndedParams): Promise<void> {
    const agent = agentOf({ sessionKey: p.childSessionKey }, ctx);
    const told = { childSessionKey: p.childSessionKey, reason: p.reason };
    await client
      .call(agent, "onSubagentEnded", told, config.deadlineMs)
      .catch((error: unknown) => degraded("a subagent that ended is forgotten when its time is over", error));
  }

  async function dispose(): Promise<void> {
    turn.abort(new HarkError("aborted", "the turn is over"));
  }

  return {
    info: {
      id: ENGINE_ID,
      name: "Hark",
      version: shared.version,
      ownsCompaction: false,
      turnMaintenanceMode: "background" as const,
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1" as const,
        turnAdvancementIdempotency: "atomic-idempotent-v1" as const,
      },
      // Nothing is required of a host that runs agents: one without assemble still stores its turns.
      hostRequirements: {
        "manual-compact": {
          requiredCapabilities: ["compact" as const],
          unsupportedMessage: "Hark leaves compaction to the host, and this host offers none: run /compact from a host that does.",
        },
      },
      // runtimeContext is for the host's own compaction below; it never leaves this process.
      acceptedHostParams: ["sessionKey", "prompt", "sessionTarget", "runtimeSettings", "runtimeContext", "abortSignal"],
    },
    bootstrap,
    maintain,
    ingest,
    ingestBatch,
    afterTurn,
    commitTurn,
    assemble,
    compact: shared.compact,
    prepareSubagentSpawn,
    onSubagentEnded,
    dispose,
  };
}

function passThrough(p: host.AssembleParams, addition: string | undefined): host.AssembleResult {
  const messages = Array.isArray(p?.messages) ? [...p.messages] : [];
  return { messages, estimatedTokens: estimateTokens(messages), ...(addition ? { systemPromptAddition: addition } : {}) };
}

/** Sets a value in a map of sessions that forgets the ones not used for the longest. */
function remember<V>(map: Map<string, V>, place: string, value: V): void {
  map.delete(place);
  map.set(place, value);
  if (map.size > 1024) map.delete(map.keys().next().value!);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
