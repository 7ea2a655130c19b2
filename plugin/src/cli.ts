/**
 * "openclaw hark …": the hark program with the plugin's data and options. Only "hark import" without
 * files is done here, because the sessions it takes in are in the host's own store.
 */

import { spawn } from "node:child_process";
import { AgentMemory, type MemoryDeps } from "./agentmemory.ts";
import type { Daemon } from "./daemon.ts";
import type { HostConfig } from "./hostmemory.ts";
import { importHost, type ImportOptions } from "./import.ts";

/** The part of the host's command line library that is used. */
export interface Command {
  command(name: string): Command;
  description(text: string): Command;
  argument(name: string, description: string): Command;
  allowUnknownOption(allow?: boolean): Command;
  allowExcessArguments(allow?: boolean): Command;
  helpOption(flags: false): Command;
  action(run: (args: string[]) => Promise<void>): Command;
  readonly args: string[];
}

export interface CliDeps extends MemoryDeps {
  readonly daemon: Pick<Daemon, "program" | "environment">;
  readonly say: (line: string) => void; // results
  readonly note: (line: string) => void; // progress
}

const IMPORT_HELP = `Takes in what OpenClaw has: every session of its store, and the memory files of every agent's
workspace. What Hark has already is skipped, so an import that was interrupted is simply repeated.

  openclaw hark import                  everything
  openclaw hark import --dry-run        says what there is, and stores nothing
  openclaw hark import --agent main     one agent
  openclaw hark import FILE|DIR…        transcripts and chats from files: see "openclaw hark import --help FILE"

Flags: --agent ID, --dry-run, --json, --quiet`;

export function registerCli(program: Command, deps: () => CliDeps, config: () => HostConfig): void {
  const hark = program.command("hark");
  hark
    .description("Search, import and look after what Hark remembers")
    .argument("[args...]", "a command of the hark program and its flags")
    .allowUnknownOption(true)
    .allowExcessArguments(true)
    .helpOption(false)
    .action(async () => {
      process.exitCode = await runCli(hark.args, deps(), config());
    });
}

/** Runs one command line and returns the exit code. */
export async function runCli(args: readonly string[], deps: CliDeps, cfg: HostConfig): Promise<number> {
  const wanted = args[0] === "import" ? importOptions(args.slice(1)) : undefined;
  if (wanted === "help") {
    deps.say(IMPORT_HELP);
    return 0;
  }
  if (wanted) return await importHost(deps, cfg, wanted);
  try {
    const program = await deps.daemon.program();
    return await run(program, withWorkspace(args, deps, cfg), { ...deps.daemon.environment(), ...terminal(), HARK_DATA: deps.config.dataDir });
  } catch (error) {
    deps.note(`hark: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}

/** The options of an import of the host's store; undefined where files are named or a flag is the program's. */
function importOptions(args: readonly string[]): ImportOptions | "help" | undefined {
  const out = { agent: undefined as string | undefined, dryRun: false, json: false, quiet: false };
  for (let i = 0; i < args.length; i++) {
    const [flag, value] = args[i]!.split(/=(.*)/s);
    if (flag === "--agent") out.agent = value ?? args[++i];
    else if (flag === "--dry-run") out.dryRun = true;
    else if (flag === "--json") out.json = true;
    else if (flag === "--quiet" || flag === "-q") out.quiet = true;
    else if ((flag === "--help" || flag === "-h") && args.length === 1) return "help";
    else return undefined;
  }
  return out;
}

/** "hark memory …" searches the agent's workspace unless another is named. */
function withWorkspace(args: readonly string[], deps: CliDeps, cfg: HostConfig): string[] {
  const has = (flag: string): boolean => args.some((a) => a === flag || a.startsWith(flag + "="));
  if (args[0] !== "memory" || args.length < 2 || has("--workspace") || has("--help") || has("-h")) return [...args];
  const at = args.findIndex((a) => a === "--agent" || a.startsWith("--agent="));
  const agent = at < 0 ? "main" : args[at]!.includes("=") ? args[at]!.split("=")[1]! : args[at + 1] ?? "main";
  const { workspace } = new AgentMemory(deps, cfg, agent).settings;
  return workspace === undefined ? [...args] : [...args, "--workspace", workspace];
}

/** What the terminal is, for colours and widths; the rest of the environment stays here. */
function terminal(): Record<string, string> {
  const names = ["TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH"];
  return Object.fromEntries(names.flatMap((n) => (process.env[n] === undefined ? [] : [[n, process.env[n]!]])));
}

function run(program: string, args: readonly string[], env: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "inherit", env, windowsHide: true });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? (signal ? 130 : 1)));
  });
}
