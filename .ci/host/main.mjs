// The story the real host is taken through, and what the model has to have been sent. See run.sh.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { memoryStory } from "./memory.mjs";
import { Model, textOf } from "./model.mjs";
import { OpenClaw, pause } from "./openclaw.mjs";
import { faults, prefix, recallOf, systemOf } from "./requests.mjs";

const { values: flags } = parseArgs({ options: { root: { type: "string" }, openclaw: { type: "string" } } });
const only = (process.env.ONLY ?? "oneshot,gateway,memory,faults,prefix").split(",");
const began = performance.now();
const passed = [];
const failed = [];
const timings = [];
let daemonOfOneShot; // its process, when that part was run

const say = (line) => console.log(`[${((performance.now() - began) / 1000).toFixed(1).padStart(6)}s] ${line}`);

function check(name, ok, detail = "") {
  (ok ? passed : failed).push(name);
  say(`${ok ? "ok  " : "FAIL"} ${name}${ok || detail === "" ? "" : `\n         ${String(detail).slice(0, 1500)}`}`);
}

/** Runs a turn, keeps its time, and returns its reply and the requests the model got meanwhile. */
async function turn(kind, session, message, agent = "main") {
  const from = model.requests.length;
  const start = performance.now();
  const reply = await (kind === "one-shot" ? host.oneShot(session, message, agent) : host.turn(session, message, agent));
  const ms = performance.now() - start;
  timings.push({ kind, ms });
  const requests = model.requests.slice(from).map((r) => r.body).filter((r) => r.tools?.length && ours(r, message));
  return { reply, ms, requests, first: requests[0], text: JSON.stringify(requests[0]?.messages ?? []) };
}

const ours = (request, message) => request.messages.some((m) => m.role === "user" && textOf(m.content).includes(message));
const recalled = (t) => recallOf(t.first ?? { messages: [] })?.text ?? "";

// Set up

const model = await new Model().listen();
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "hark-host-"));
const host = new OpenClaw({ dir, entry: path.resolve(flags.openclaw), model });
const hark = path.join(flags.root, "plugin", "bin", `${process.platform}-${{ x64: "amd64" }[process.arch] ?? process.arch}`, "hark");
const shim = path.join(dir, "bin");
fs.mkdirSync(shim);
fs.writeFileSync(path.join(shim, "openclaw"), `#!/bin/sh\nexec "${process.execPath}" "${host.entry}" "$@"\n`, { mode: 0o755 });
host.env.PATH = `${shim}:${host.env.PATH}`;

async function install() {
  await host.configure();
  const start = performance.now();
  const out = await host.run(hark, ["plugin", "install", "--package", newestPackage()]);
  say(`installed in ${((performance.now() - start) / 1000).toFixed(1)} s: ${out.trim().split("\n").at(-1)}`);
  const config = JSON.parse(fs.readFileSync(host.config, "utf8"));
  check("install selects Hark for the context engine slot", config.plugins?.slots?.contextEngine === "hark", JSON.stringify(config.plugins));
}

function newestPackage() {
  const dist = path.join(flags.root, "dist");
  const found = fs.readdirSync(dist).filter((f) => /^hark-openclaw-.*\.tgz$/.test(f)).map((f) => path.join(dist, f));
  return found.sort((a, b) => fs.statSync(b).mtimeMs - fs.statSync(a).mtimeMs)[0];
}

// The parts of the story

async function oneShot() {
  const told = await turn("one-shot", "s1", "Please remember: my dachshund Biscuit is allergic to chicken.");
  check("a one-shot turn is answered", /^Understood/.test(told.reply), told.reply);
  const system = systemOf(told.first);
  check("the system prompt has the memory section and Hark's guide", /## Memory Recall/.test(system) && /Hark/.test(system), system.slice(-3000));
  check("nothing is recalled when nothing is known", recalled(told) === "", recalled(told));
  const asked = await turn("one-shot", "s2", "What is my dog Biscuit allergic to?");
  daemonOfOneShot = host.daemonPid();
  check("a fact told in s1 is in the model's request in s2, from process to process", /chicken/.test(recalled(asked)), asked.text.slice(-1500));
}

async function gateway() {
  const told = await turn("gateway", "g1", "Please remember: the boathouse is number 17 on Alder Lane.");
  if (daemonOfOneShot) check("the gateway uses the daemon that the one-shot turns started", host.daemonPid() === daemonOfOneShot);
  check("a gateway turn is answered", /^Understood/.test(told.reply), told.reply);
  const asked = await turn("gateway", "g2", "Which number is the boathouse on Alder Lane?");
  check("a fact told in one session is in the model's request in another", /number 17/.test(recalled(asked)), asked.text.slice(-1500));
  const other = await turn("gateway", "g2", "Which number is the boathouse on Alder Lane?", "other");
  check("and in no other agent's", !/number 17|chicken/.test(other.text), other.text.slice(-1500));

  const tool = await turn("gateway", "g3", 'use read {"path":"shed.txt"}');
  const result = tool.requests.at(-1);
  check("a tool call and its result reach the model as a pair", result.messages.some((m) => m.role === "tool" && /blue door/.test(textOf(m.content))) && /The tool says/.test(tool.reply), JSON.stringify(result.messages.slice(-4)));
  const later = await turn("gateway", "g3", "Thank you, that was all about the shed.");
  check("and are still one in the next turn", later.first.messages.some((m) => m.tool_calls) && faults(later.first).length === 0, faults(later.first));

  await compaction();
  await subagent();
  await reload();
}

/** Options take effect in a gateway that runs, the daemon's own by starting it again. */
async function reload() {
  const applied = () => (host.gatewayLog().match(/config hot reload applied/g) ?? []).length;
  const set = async (config) => {
    await pause(3000); // OpenClaw refuses to reload a plugin whose turn is not over yet
    const before = applied();
    await host.openclaw(["config", "set", "plugins.entries.hark.config", JSON.stringify(config), "--strict-json", "--replace"]);
    if (!(await until(() => applied() > before, 30))) throw new Error("the gateway did not take the new configuration");
  };
  const question = "Which number is the boathouse on Alder Lane?";
  const before = host.daemonPid();
  await set({ recall: { enabled: false } });
  const off = await turn("gateway", "o1", question);
  check("recall.enabled false takes effect in a gateway that runs", recalled(off) === "" && /^Understood/.test(off.reply), off.text.slice(-1500));
  await set({ recall: { maxTokens: 900 } });
  await turn("gateway", "o2", "Good morning."); // the start of another daemon may take this turn's time for recall
  const on = await turn("gateway", "o3", question);
  check("an option of the daemon's starts it again, and recall is back", /number 17/.test(recalled(on)) && host.daemonPid() !== before, `daemon ${before}, now ${host.daemonPid()}: ${on.text.slice(-1500)}`);
}

/** Writes the configuration anew and waits until the gateway goes by it. */
async function configure(change) {
  await pause(1500); // OpenClaw refuses to reload a plugin whose turn is not over yet
  const taken = () => (host.gatewayLog().match(/config hot reload applied|\[gateway\] ready/g) ?? []).length;
  const before = taken();
  const config = JSON.parse(fs.readFileSync(host.config, "utf8"));
  change(config);
  fs.writeFileSync(host.config + ".next", JSON.stringify(config, null, 2));
  fs.renameSync(host.config + ".next", host.config);
  if (!(await until(() => taken() > before, 60))) throw new Error("the gateway did not take the new configuration");
}

/** Runs a part and says how long it took. */
async function timed(what, part) {
  const start = performance.now();
  await part();
  say(`${what}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

async function compaction() {
  await turn("gateway", "c1", "Please remember: the wifi password of the cabin is saffron-otter-42.");
  for (const about of ["the weather in the hills", "soup with dumplings", "a film about lighthouses"]) {
    await turn("gateway", "c1", `Let us talk about ${about}. ${"It goes on and on. ".repeat(40)}`);
  }
  const before = await turn("gateway", "c1", "What is the wifi password of the cabin?");
  check("what is in the window already is not recalled again", !/saffron-otter/.test(recalled(before)), recalled(before));
  await host.openclaw(["sessions", "compact", "agent:main:explicit:c1"]);
  const after = await turn("gateway", "c1", "Once more, what is the wifi password of the cabin?");
  check("the session was compacted", /small talk/.test(after.text) && after.first.messages.length < before.first.messages.length + 2, after.text.slice(0, 3000));
  check("the turn after a compaction recalls what was said before it", /saffron-otter-42/.test(recalled(after)), after.text.slice(-2500));
}

async function subagent() {
  const from = model.requests.length;
  await turn("gateway", "p1", "Please remember: the code of the wine cellar is 5150.");
  await turn("gateway", "p1", 'use sessions_spawn {"task":"Find the code of the wine cellar and report it","label":"helper"}');
  const child = await until(() => model.requests.slice(from).map((r) => r.body).find((r) => /session=agent:main:subagent:/.test(JSON.stringify(r.messages))), 60);
  check("a subagent was started", child !== undefined);
  const text = JSON.stringify(child?.messages.filter((m) => m.role !== "system") ?? []);
  check("a subagent with isolated context sees none of it", child !== undefined && !/5150|hark-recall/.test(text), text.slice(-2000));
  await until(() => model.requests.slice(from).some((r) => /task completed/.test(JSON.stringify(r.body.messages.slice(-2)))), 60);
}

async function faultInjection() {
  const usual = median(timings.filter((t) => t.kind === "gateway").map((t) => t.ms));
  // kill -9
  await turn("gateway", "k1", "Please remember: the boiler is serviced on 14 March at nine.");
  const killed = host.daemonPid();
  process.kill(killed, "SIGKILL");
  const after = await turn("gateway", "k2", "When is the boiler serviced?");
  check("kill -9 of the daemon between turns loses nothing, and the next turn is served", /14 March/.test(recalled(after)) && host.daemonPid() !== killed, after.text.slice(-1500));
  // A daemon that hangs
  process.kill(host.daemonPid(), "SIGSTOP");
  const hung = await turn("gateway", "k3", "Please remember: the lock of the spare bike opens with 7731.").finally(() => process.kill(host.daemonPid(), "SIGCONT"));
  const extra = hung.ms - (usual || 0);
  check("with a daemon that hangs the reply still comes", /^Understood/.test(hung.reply), hung.reply);
  check("and it costs one deadline", !usual || extra < 1500 + 3000, `${Math.round(hung.ms)} ms, usually ${Math.round(usual)} ms`);
  timings.push({ kind: "hung daemon", ms: hung.ms });
  await pause(3500);
  await turn("gateway", "k3", "Are you still there?");
  const again = await turn("gateway", "k4", "What opens the lock of the spare bike?");
  check("the turn it could not store is stored when it is back", /7731/.test(recalled(again)), again.text.slice(-1500));
  // No program
  const programs = installed(host.state);
  for (const p of programs) fs.renameSync(p, p + ".gone");
  process.kill(host.daemonPid(), "SIGKILL");
  const without = await turn("gateway", "k5", "Please remember: my locker has the number 212.");
  check("with the program missing the agent still answers", programs.length > 0 && /^Understood/.test(without.reply), without.reply);
  check("and has its memory section", /## Memory Recall/.test(systemOf(without.first)));
  check("and the log says what to do", /hark program was (not )?found[^\n]*plugins\.entries\.hark\.config\.binary/.test(host.everythingLogged()));
  for (const p of programs) fs.renameSync(p + ".gone", p);
  await pause(5500);
  await turn("gateway", "k5", "And now?");
  const found = await turn("gateway", "k6", "Which number does my locker have?");
  check("what was said meanwhile is stored once it is there again", /212/.test(recalled(found)), found.text.slice(-1500));
}

/** The programs that were installed with the plugin. */
function installed(state) {
  return fs.readdirSync(state, { recursive: true }).map((f) => path.join(state, f))
    .filter((f) => /[\\/]bin[\\/][a-z0-9]+-[a-z0-9]+[\\/]hark$/.test(f) && fs.statSync(f).isFile());
}

async function commonPrefix() {
  for (const fact of ["my sister Ilse lives in Utrecht and plays the cello", "the car is due for inspection in October", "we painted the kitchen in sage green"]) {
    await turn("gateway", "f1", `Please remember: ${fact}.`);
  }
  const lines = [
    "Good morning, let us plan the week.", "Where does my sister Ilse live?", "Thanks. Remind me what she plays.",
    'use read {"path":"shed.txt"}', "Good, I will get the key there.", "When is the car due for inspection?",
    "Put a visit to the garage on the list.", "Which colour did we paint the kitchen?", "I want to paint the hall as well.",
    "How many litres for twelve square metres?", 'use read {"path":"shed.txt"}', "What did the note say again?",
    "Write a short invitation to a garden party.", "Make it friendlier.", "Does Ilse still play the cello?",
    "Let us talk about supper.", "Something with lentils, please.", "And a dessert?", "Sum up the list for me.", "Good night.",
  ];
  const requests = [];
  for (const line of lines) requests.push(...(await turn("gateway", "long", line)).requests);
  const rows = requests.slice(1).map((now, i) => ({ n: i + 2, recall: recallOf(now) !== undefined, ...prefix(requests[i], now) }));
  say("how far each request of a 20-turn session is byte-identical with the one before it");
  console.log("         request  messages    bytes   identical   of the one before   recall   guarded messages");
  for (const r of rows) {
    const share = `${((100 * r.same) / r.before).toFixed(1)} %`;
    console.log(`         ${String(r.n).padStart(7)}  ${String(requests[r.n - 1].messages.length).padStart(8)} ${String(r.now).padStart(8)}  ${String(r.same).padStart(10)}  ${share.padStart(18)}  ${(r.recall ? "yes" : "-").padStart(7)}  ${r.differs < 0 ? `${r.guarded} the same` : `message ${r.differs} of ${r.guarded} DIFFERS`}`);
  }
  const broken = rows.filter((r) => r.differs >= 0);
  check("nothing that stood before the previous recall or user message differs", rows.length >= 20 && broken.length === 0, broken.map((r) => {
    const a = JSON.stringify(requests[r.n - 2].messages[r.differs]), b = JSON.stringify(requests[r.n - 1].messages[r.differs]);
    let at = 0;
    while (a[at] === b?.[at]) at++;
    return `request ${r.n}, message ${r.differs}: …${a.slice(Math.max(0, at - 80), at + 120)}\n         now: …${b?.slice(Math.max(0, at - 80), at + 120)}`;
  }).join("\n         "));
  check("the tools stay the same", rows.every((r) => r.tools));
  check("recall took part in that session", rows.filter((r) => r.recall).length >= 3, `${rows.filter((r) => r.recall).length} of ${rows.length}`);
}

function leftovers() {
  const bad = model.requests.map((r) => r.body).filter((r) => r.tools?.length).map((r, i) => ({ i, faults: faults(r) })).filter((r) => r.faults.length > 0);
  check(`all ${model.requests.length} requests are valid: recall last before the user, calls and results in pairs`, bad.length === 0, JSON.stringify(bad));
  const logged = host.everythingLogged().split("\n").filter((l) => /degraded to|quarantin(?!es and fallbacks)|context engine \w+ failed/i.test(l));
  check("the host never gave Hark up", logged.length === 0, logged.join("\n"));
  const secret = fs.readdirSync(host.data, { recursive: true }).map((f) => path.join(host.data, f))
    .filter((f) => fs.statSync(f).isFile() && fs.readFileSync(f).includes("sk-scripted-secret"));
  check("no key of the host's is in Hark's data", secret.length === 0, secret.join(", "));
}

function doctor() {
  const r = spawnSync(hark, ["doctor", "--data", host.data], { env: host.env, encoding: "utf8" });
  console.log(r.stdout.split("\n").map((l) => "         " + l).join("\n"));
  check("hark doctor finds nothing broken", r.status === 0, r.stdout + r.stderr);
}

async function uninstall() {
  await host.openclaw(["plugins", "uninstall", "hark", "--force"]);
  const config = JSON.parse(fs.readFileSync(host.config, "utf8"));
  check("uninstall gives the slot back and keeps the data", config.plugins?.slots?.contextEngine !== "hark" && fs.existsSync(path.join(host.data, "agents")), JSON.stringify(config.plugins));
}

async function link() {
  await host.run(hark, ["plugin", "install", "--link", "--package", path.join(flags.root, "plugin")]);
  const config = JSON.parse(fs.readFileSync(host.config, "utf8"));
  check("a checkout can be linked", config.plugins?.slots?.contextEngine === "hark" && config.plugins.load.paths.includes(path.join(flags.root, "plugin")), JSON.stringify(config.plugins));
}

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

async function until(look, seconds) {
  for (let i = 0; i < seconds * 5; i++) {
    const found = look();
    if (found) return found;
    await pause(200);
  }
  return undefined;
}

// The run

process.on("SIGINT", () => process.exit(1));
process.on("SIGTERM", () => process.exit(1));
process.on("exit", () => {
  for (const child of host.children) child.kill("SIGKILL");
});
try {
  await install();
  if (only.includes("oneshot")) await oneShot();
  if (only.some((part) => part !== "oneshot")) {
    const start = performance.now();
    await host.startGateway();
    say(`gateway ready after ${((performance.now() - start) / 1000).toFixed(1)} s`);
    if (only.includes("gateway")) await gateway();
    if (only.includes("memory")) await memoryStory({ host, check, turn, recalled, until, timed, configure });
    if (only.includes("faults")) await faultInjection();
    if (only.includes("prefix")) await commonPrefix();
    doctor();
    await host.stopGateway();
  }
  leftovers();
  await uninstall();
  await link();
} catch (error) {
  check("the story went to its end", false, `${error.stack}\n${host.gatewayLog().slice(-1500)}`);
} finally {
  await host.end();
  model.close();
}
for (const kind of new Set(timings.map((t) => t.kind))) {
  const ms = timings.filter((t) => t.kind === kind).map((t) => t.ms);
  say(`${kind}: ${ms.length} turns, median ${(median(ms) / 1000).toFixed(2)} s, longest ${(Math.max(...ms) / 1000).toFixed(2)} s`);
}
if (process.env.KEEP || failed.length > 0) {
  fs.writeFileSync(path.join(dir, "requests.jsonl"), model.requests.map((r) => JSON.stringify(r.body)).join("\n"));
  say(`everything is kept in ${dir}`);
} else {
  fs.rmSync(dir, { recursive: true, force: true });
}
console.log(`${passed.length} passed, ${failed.length} failed`);
process.exit(failed.length > 0 ? 1 : 0);
