import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { readConfig } from "../src/config.ts";

const manifest = JSON.parse(fs.readFileSync("openclaw.plugin.json", "utf8"));
const pkg = JSON.parse(fs.readFileSync("package.json", "utf8"));

/** The dotted names of all options of a schema. */
function options(schema: any, prefix = ""): string[] {
  return Object.entries(schema.properties).flatMap(([name, s]: [string, any]) =>
    s.properties ? options(s, prefix + name + ".") : [prefix + name],
  );
}

const all = options(manifest.configSchema);

test("manifest and package agree with each other and with the engine", () => {
  assert.equal(manifest.id, "hark");
  assert.equal(manifest.version, pkg.version);
  assert.deepEqual(manifest.kind, ["context-engine", "memory"]);
  assert.deepEqual(pkg.openclaw.extensions, ["./dist/index.js"]);
  assert.equal(pkg.dependencies, undefined, "nothing is needed at run time");
  assert.ok(pkg.files.includes("bin/"));
});

test("every option has a label, is documented, and unknown ones are refused", () => {
  const readme = fs.readFileSync("README.md", "utf8");
  assert.deepEqual(Object.keys(manifest.uiHints).sort(), [...all].sort());
  for (const option of all) {
    const last = option.split(".").at(-1)!;
    assert.ok(readme.includes("`" + option + "`") || readme.includes("`." + last + "`"), option);
  }
  for (const s of [manifest.configSchema, manifest.configSchema.properties.recall, manifest.configSchema.properties.embedder]) {
    assert.equal(s.additionalProperties, false);
  }
  const grouped = manifest.configGroups.flatMap((g: any) => g.properties).sort();
  assert.deepEqual(grouped, Object.keys(manifest.configSchema.properties).sort());
});

test("every option changes something", () => {
  const other: Record<string, unknown> = {
    binary: "/x", dataDir: "/y", configFile: "/z", deadlineMs: 99, commitDeadlineMs: 999, catchUpMs: 9, idleExit: "1h", timezone: "UTC",
    "recall.enabled": false, toolDeadlineMs: 999, "dreaming.enabled": false, "recall.maxTokens": 5, "recall.policy": "agent", "embedder.provider": "none", "embedder.model": "m", "embedder.baseUrl": "http://127.0.0.1:1",
  };
  const plain = readConfig({}, { HOME: "/home/a" });
  for (const option of all) {
    assert.ok(option in other, `the test knows no other value for ${option}`);
    const [group, name] = option.split(".") as [string, string?];
    const raw = name === undefined ? { [group]: other[option] } : { [group]: { [name]: other[option] } };
    assert.notDeepEqual(readConfig(raw, { HOME: "/home/a" }), plain, option);
  }
});

test("defaults in the schema are the ones used", () => {
  const plain: any = readConfig(undefined, { HOME: "/home/a" });
  for (const [name, s] of Object.entries<any>(manifest.configSchema.properties)) {
    if (s.default !== undefined) assert.equal(plain[name], s.default, name);
  }
  assert.equal(plain.recall, true);
});

test("the data folder is shared with the program, and never between two hosts by accident", () => {
  const dir = (env: Record<string, string>): string => readConfig({}, env).dataDir;
  if (process.platform === "linux") assert.equal(dir({ HOME: "/home/a" }), "/home/a/.local/share/hark");
  assert.equal(dir({ HOME: "/home/a", OPENCLAW_STATE_DIR: "/home/a/.openclaw" }), dir({ HOME: "/home/a" }));
  assert.equal(dir({ HOME: "/home/a", OPENCLAW_STATE_DIR: "/srv/b" }), "/srv/b/hark");
  assert.equal(dir({ HOME: "/home/a", OPENCLAW_STATE_DIR: "/srv/b", HARK_DATA: "/d" }), "/d");
  assert.equal(readConfig({ dataDir: "~/h" }, { HOME: "/home/a" }).dataDir, "/home/a/h");
});

test("values of the wrong kind are taken as absent", () => {
  const odd = readConfig({ binary: 7, deadlineMs: "soon", catchUpMs: NaN, recall: "no", embedder: null, dataDir: "" }, { HOME: "/home/a" });
  assert.deepEqual(odd, readConfig({}, { HOME: "/home/a" }));
});

test("HOST-21: every tool is declared, in the profiles that agents use, and only where it is Hark's", async () => {
  const { toolFactories } = await import("../src/tools.ts");
  const none = (): never => { throw new Error("naming tools needs no daemon"); };
  const names = (inSlot: boolean): string[] => toolFactories(none, inSlot, none).map(([name, factory]) => {
    const tool = factory({ sessionKey: "agent:main:main" })!;
    assert.equal(tool.name, name);
    assert.ok(tool.description.length <= 420, `${name}: every request carries its ${tool.description.length} characters`);
    assert.equal((tool.parameters as any).type, "object");
    return name;
  });
  assert.deepEqual(names(false), ["hark_search", "hark_open", "hark_forget"]);
  assert.deepEqual(names(true), ["memory_search", "memory_get", "hark_open", "hark_forget"]);
  assert.deepEqual([...manifest.contracts.tools].sort(), [...new Set([...names(false), ...names(true)])].sort());
  for (const name of manifest.contracts.tools) {
    assert.deepEqual(manifest.toolMetadata[name].profiles, ["coding", "messaging"], name);
  }
  assert.equal(manifest.toolMetadata.hark_forget.sideEffecting, true);
  const readme = fs.readFileSync("README.md", "utf8");
  for (const name of manifest.contracts.tools) assert.ok(readme.includes("`" + name + "`"), name);
  assert.match(readme, /--accept-capabilities/);
  assert.match(readme, /allowConversationAccess/);
});

test("the commands of the program are one command of OpenClaw", () => {
  assert.deepEqual(manifest.cliCommands.map((c: any) => [c.name, c.hasSubcommands]), [["hark", true]]);
});

/** Checks a value against the part of JSON Schema that the manifest uses; the first fault, or undefined. */
function fault(schema: any, value: any, at = ""): string | undefined {
  if (schema.type === "object") {
    if (typeof value !== "object" || value === null) return `${at}: not an object`;
    for (const [key, v] of Object.entries(value)) {
      const inner = schema.properties?.[key];
      const found = inner ? fault(inner, v, at ? `${at}.${key}` : key) : schema.additionalProperties === false ? `${at ? at + "." : ""}${key}: unknown` : undefined;
      if (found) return found;
    }
    return undefined;
  }
  const type = schema.type === "integer" ? Number.isInteger(value) : typeof value === schema.type;
  if (!type || (schema.enum && !schema.enum.includes(value)) || (schema.pattern && !new RegExp(schema.pattern).test(value)) || value < schema.minimum || value > schema.maximum) return `${at}: ${JSON.stringify(value)}`;
  return undefined;
}

test("HOST-22: every documented option is accepted with its documented default, and an unknown one is named", () => {
  const readme = fs.readFileSync("README.md", "utf8");
  const rows = readme.slice(readme.indexOf("## Options")).split("\n## ")[0]!.split("\n").filter((l) => l.startsWith("| `"));
  const documented = rows.flatMap((row) => {
    const [first, ...rest] = [...row.split("|")[1]!.matchAll(/`([^`]+)`/g)].map((m) => m[1]!);
    return [first!, ...rest.map((r) => (r.startsWith(".") ? first!.split(".")[0] + r : r))];
  });
  assert.deepEqual([...documented].sort(), [...all].sort(), "the options of the README are those of the schema");
  const sample: Record<string, unknown> = {
    binary: "/x", dataDir: "~/y", configFile: "/z", deadlineMs: 1500, commitDeadlineMs: 5000, catchUpMs: 0, toolDeadlineMs: 10000, idleExit: "15m", timezone: "UTC",
    "dreaming.enabled": false, "recall.enabled": true, "recall.maxTokens": 1200, "recall.policy": "owner", "embedder.provider": "builtin", "embedder.model": "m", "embedder.baseUrl": "http://127.0.0.1:1",
  };
  const nested = (option: string, v: unknown): object => option.split(".").reduceRight<any>((inner, key) => ({ [key]: inner }), v);
  for (const option of documented) assert.equal(fault(manifest.configSchema, nested(option, sample[option])), undefined, option);
  assert.equal(fault(manifest.configSchema, { recal: {} }), "recal: unknown");
  assert.equal(fault(manifest.configSchema, { recall: { max_tokens: 3 } }), "recall.max_tokens: unknown");
  assert.equal(fault(manifest.configSchema, { recall: { policy: "everyone" } }), 'recall.policy: "everyone"');
});
