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
  assert.equal(manifest.kind, "context-engine");
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
    "recall.enabled": false, "recall.maxTokens": 5, "recall.policy": "agent", "embedder.provider": "none", "embedder.model": "m", "embedder.baseUrl": "http://127.0.0.1:1",
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
