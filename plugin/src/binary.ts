/** Where the hark program is. */

import fs from "node:fs/promises";
import { constants } from "node:fs";
import path from "node:path";
import { HarkError } from "./endpoint.ts";

const systems: Readonly<Record<string, string>> = { win32: "windows" };
const machines: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

/** The program's path inside the plugin's package, for this machine: "bin/linux-amd64/hark". */
export function bundledBinary(platform: string = process.platform, arch: string = process.arch): string {
  const name = platform === "win32" ? "hark.exe" : "hark";
  return path.join("bin", `${systems[platform] ?? platform}-${machines[arch] ?? arch}`, name);
}

export interface BinaryQuery {
  readonly option: string | undefined;
  readonly rootDir: string | undefined;
  readonly path: string | undefined;
}

/** Finds the program: the option if there is one, else beside the plugin, else on PATH. */
export async function findBinary(q: BinaryQuery): Promise<string> {
  if (q.option !== undefined) {
    if (await runs(q.option)) return q.option;
    throw new HarkError(
      "no-binary",
      `the option "binary" names ${q.option}, where there is no program to run`,
      "Correct plugins.entries.hark.config.binary, or remove it to use the one that comes with the plugin",
    );
  }
  const name = process.platform === "win32" ? "hark.exe" : "hark";
  const places = q.rootDir === undefined ? [] : [path.join(q.rootDir, bundledBinary())];
  for (const dir of (q.path ?? "").split(path.delimiter)) {
    if (path.isAbsolute(dir)) places.push(path.join(dir, name));
  }
  for (const place of places) {
    if (await runs(place)) return place;
  }
  throw new HarkError(
    "no-binary",
    `the hark program was found neither beside the plugin (${q.rootDir ? path.join(q.rootDir, bundledBinary()) : "its folder is unknown"}) nor on PATH`,
    "Install the plugin's package for this machine, or name the program in plugins.entries.hark.config.binary",
  );
}

async function runs(file: string): Promise<boolean> {
  try {
    await fs.access(file, constants.X_OK);
    return (await fs.stat(file)).isFile();
  } catch {
    return false;
  }
}
