/** Which tools are registered, and for whom a call of one is made. */

import { AgentMemory, type MemoryDeps } from "./agentmemory.ts";
import { harkForgetTool, harkOpenTool, harkSearchTool, type Shown } from "./harktools.ts";
import type { HostConfig, ToolContext, ToolFactory } from "./hostmemory.ts";
import { agentOf } from "./params.ts";
import { memoryGetTool, memorySearchTool, type Run } from "./slottools.ts";

/** The tools by name, in the order of registration. In the memory slot Hark's search is memory_search. */
export function toolFactories(deps: () => MemoryDeps, inSlot: boolean, config: () => HostConfig): [name: string, factory: ToolFactory][] {
  const shown: Shown = new Map();
  const runOf = (ctx: ToolContext): Run => () => {
    const cfg = ctx.getRuntimeConfig?.() ?? ctx.runtimeConfig ?? ctx.config ?? config();
    const agent = ctx.agentId ?? agentOf(ctx.sessionKey ? { sessionKey: ctx.sessionKey } : {}, {});
    const { sessionKey, sandboxed, senderIsOwner } = ctx;
    return { memory: new AgentMemory(deps(), cfg, agent, ctx.workspaceDir), who: { sessionKey, sandboxed, senderIsOwner } };
  };
  const own: [string, ToolFactory][] = [
    ["hark_open", (ctx) => harkOpenTool(runOf(ctx))],
    ["hark_forget", (ctx) => harkForgetTool(runOf(ctx), shown)],
  ];
  if (!inSlot) return [["hark_search", (ctx) => harkSearchTool(runOf(ctx))], ...own];
  return [["memory_search", (ctx) => memorySearchTool(runOf(ctx))], ["memory_get", (ctx) => memoryGetTool(runOf(ctx))], ...own];
}
