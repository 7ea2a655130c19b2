/**
 * Whose words a memory file holds, for the host: it puts MEMORY.md and USER.md into a prompt by itself
 * only where they are the owner's or the agent's. Answered without the daemon, so that a prompt is the
 * same whether or not it runs.
 */

import fs from "node:fs/promises";
import path from "node:path";
import type { ClassifyParams, MemoryFunctions, OriginClass } from "./hostmemory.ts";

export async function classify(host: Pick<MemoryFunctions, "provenance">, p: ClassifyParams): Promise<{ relativePath: string; originClass: OriginClass }[]> {
  return await Promise.all(
    p.relativePaths.map(async (relativePath) => {
      const real = p.readSources
        ? p.readSources.find((s) => s.relativePath === relativePath)?.canonicalRelativePath
        : await realPath(p.workspaceDir, relativePath);
      return { relativePath, originClass: await classOf(host, p.workspaceDir, real) };
    }),
  );
}

async function classOf(host: Pick<MemoryFunctions, "provenance">, workspaceDir: string, real: string | undefined): Promise<OriginClass> {
  if (real === undefined || !isPlain(real)) return "untrusted";
  if (/^dreams\.md$/i.test(real) || /^memory\/(dreaming|\.dreams)(\/|$)/.test(real)) return "system";
  const memory = /^(MEMORY|memory|USER)\.md$/.test(real) || /^users\/[A-Za-z0-9][\w-]{0,127}\/USER\.md$/.test(real) || /^memory\/.*\.md$/.test(real);
  if (!memory) return "untrusted";
  return (await host.provenance({ workspaceDir, relativePath: real })) ?? "agent";
}

/** Where a file is inside its workspace, links followed; undefined outside and where there is none. */
async function realPath(workspace: string, file: string): Promise<string | undefined> {
  try {
    const [root, real] = await Promise.all([fs.realpath(workspace), fs.realpath(path.resolve(workspace, file))]);
    return path.relative(root, real).replaceAll(path.sep, "/");
  } catch {
    return undefined;
  }
}

/** Whether a path stays inside the folder it is relative to, whatever system reads it. */
function isPlain(p: string): boolean {
  return p !== "" && !p.startsWith("../") && p !== ".." && p !== "." && !/[\\\0]/.test(p) && !path.win32.isAbsolute(p) && path.posix.normalize(p) === p;
}
