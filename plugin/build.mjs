// Bundles the plugin to dist/index.js; with --tests also the unit tests to build/test/.
// The host's own modules stay imports: the host resolves them for a plugin.
import { build } from "esbuild";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(fileURLToPath(import.meta.url));
const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
const common = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  define: { PLUGIN_VERSION: JSON.stringify(version) },
  logLevel: "warning",
};

await build({
  ...common,
  entryPoints: ["src/index.ts"],
  outfile: "dist/index.js",
  external: ["openclaw/plugin-sdk/*"],
});

if (process.argv.includes("--tests")) {
  fs.rmSync(path.join(root, "build"), { recursive: true, force: true });
  const tests = fs.readdirSync(path.join(root, "test")).filter((f) => f.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: tests.map((f) => `test/${f}`),
    outdir: "build/test",
    sourcemap: "inline",
    alias: {
      "openclaw/plugin-sdk/plugin-entry": "./test/sdk-plugin-entry.ts",
      "openclaw/plugin-sdk/core": "./test/sdk-core.ts",
      "openclaw/plugin-sdk/session-transcript-runtime": "./test/sdk-transcript.ts",
    },
  });
}
