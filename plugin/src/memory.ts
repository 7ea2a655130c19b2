/**
 * The memory plugin's part of the system prompt. The host leaves it out as soon as an engine other
 * than its own is active, and only the host's process can render it.
 */

import type { AssembleParams, HostFunctions, Logger } from "./host.ts";

/**
 * Renders it for an assemble call; undefined where there is none. The host compares the values with
 * the run's and throws when they differ, so they are passed on as they came.
 */
export function memoryPrompt(host: HostFunctions, p: AssembleParams, log: Logger): string | undefined {
  try {
    const text = host.memoryPrompt({
      availableTools: p.availableTools ?? new Set(),
      ...(p.citationsMode === undefined ? {} : { citationsMode: p.citationsMode }),
      ...(p.sessionKey === undefined ? {} : { agentSessionKey: p.sessionKey }),
    });
    return typeof text === "string" && text !== "" ? text : undefined;
  } catch (error) {
    log.warn(`hark: the memory section could not be rendered: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
