// The memory slot: Hark beside OpenClaw's own memory, in its place, without it, and alone, in one gateway. What the
// scripted model is offered, what its tools answer, and what is still known after every switch.

import fs from "node:fs";
import path from "node:path";
import { textOf } from "./model.mjs";
import { pause } from "./openclaw.mjs";
import { systemOf } from "./requests.mjs";

const GROUP = "agent:main:telegram:group:-100200";

/** Tells the story. `t` is what main.mjs gives: host, check, turn, recalled, until, say. */
export async function memoryStory(t) {
  const { host, check, turn } = t;
  const workspace = path.join(host.dir, "ws-main");
  fs.mkdirSync(path.join(workspace, "memory"), { recursive: true });
  fs.writeFileSync(path.join(workspace, "MEMORY.md"), "# Codes\n\nThe garage code is 9021.\n\n# Boats\n\nThe dinghy is called Pelican.\n");
  fs.writeFileSync(path.join(workspace, "memory", "2026-11-02.md"), "## Moorings\n\nThe barge Heron is moored at pier 7.\n");
  await turn("gateway", "q1", "Please remember: the launch code of the drone is 4417.");
  await turn("gateway", "q1", "Please remember: the alarm of the greenhouse is 3131.");

  await beside(t);
  await t.timed("both slots", () => inSlot(t));
  await t.timed("memory-core disabled", () => withoutCore(t));
  await t.timed("slot only", () => slotOnly(t));
  await t.timed("back again", () => backAgain(t));
  await t.timed("commands", () => commands(t));
}

/** Calls a tool by way of the model; its result, and the first request of the turn. */
async function tool(t, session, name, args) {
  const done = await t.turn("gateway", session, `use ${name} ${JSON.stringify(args)}`);
  const said = done.requests.at(-1)?.messages.filter((m) => m.role === "tool").at(-1);
  const text = textOf(said?.content);
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    value = { text };
  }
  return { value, text, first: done.first, tools: (done.first?.tools ?? []).map((x) => x.function.name) };
}

const shown = (r) => JSON.stringify(r?.value ?? r).slice(0, 1400);
const paths = (r) => (r.value.results ?? []).map((h) => h.path);
const both = (tools, names) => names.every((n) => tools.includes(n));

// Beside memory-core, which is the default

async function beside(t) {
  const { check } = t;
  const found = await tool(t, "q2", "hark_search", { query: "launch code of the drone" });
  check("memory: beside memory-core the agent has its tools and Hark's", both(found.tools, ["memory_search", "memory_get", "hark_search", "hark_open", "hark_forget"]), found.tools);
  check("memory: hark_search finds what another session said", /4417/.test(found.text) && found.value.results?.[0]?.id, shown(found));
  const opened = await tool(t, "q2", "hark_open", { id: found.value.results?.[0]?.id ?? "none", before: 0, after: 1 });
  check("memory: hark_open shows it in its conversation", opened.value.status === "ok" && opened.value.messages.some((m) => /4417/.test(m.text)), shown(opened));

  const alarm = (await tool(t, "q2", "hark_search", { query: "alarm of the greenhouse", maxResults: 1 })).value.results?.[0]?.id ?? "none";
  const asked = await tool(t, "q2", "hark_forget", { id: alarm, confirm: true });
  check("memory: hark_forget shows before it forgets", asked.value.status === "confirm" && asked.value.forgotten === false, shown(asked));
  const forgot = await tool(t, "q2", "hark_forget", { id: alarm, confirm: true });
  const again = await tool(t, "q2", "hark_open", { id: alarm });
  check("memory: and forgets when it is confirmed", forgot.value.status === "forgotten" && again.value.status === "not_found", shown(forgot) + shown(again));

  const copies = await tool(t, "q9", "hark_search", { query: "launch code of the drone", maxResults: 20 });
  check("memory: what the tools answered is not remembered again", copies.value.results?.some((h) => /4417/.test(h.snippet)) && copies.value.results.every((h) => h.speaker === "the agent" || !/"snippet"|"messages"/.test(h.snippet)), shown(copies));

  const all = await tool(t, "q2", "memory_search", { query: "launch code drone", corpus: "all" });
  check("memory: memory-core's memory_search with corpus all finds Hark's messages", all.value.results?.some((h) => h.corpus === "hark" && /4417/.test(h.snippet)), shown(all));
  const group = await tool(t, GROUP, "hark_search", { query: "launch code of the drone" });
  const groupAll = await tool(t, GROUP, "memory_search", { query: "launch code drone", corpus: "all" });
  check("memory: a group's session gets no message of a direct one, by no tool", Array.isArray(group.value.results) && !/4417/.test(group.text + groupAll.text), shown(group) + shown(groupAll));
  check("memory: and its own requests hold none", !/4417/.test(JSON.stringify(groupAll.first.messages)), "");
}

// In the slot

async function inSlot(t) {
  const { host, check, turn, until } = t;
  await t.configure((c) => {
    c.plugins.slots.memory = "hark";
    c.plugins.entries.hark.config = { dreaming: { enabled: false } };
  });
  const all = await tool(t, "q3", "memory_search", { query: "launch code of the drone", corpus: "all" });
  check("memory: in the slot the agent has memory_search, memory_get, hark_open and hark_forget", both(all.tools, ["memory_search", "memory_get", "hark_open", "hark_forget"]) && !all.tools.includes("hark_search"), all.tools);
  const system = systemOf(all.first);
  check("memory: and the memory section is Hark's", /## Memory Recall/.test(system) && /what was said in earlier conversations/.test(system) && /## Hark/.test(system), system.slice(-2500));
  check("memory: memory_search finds messages", all.value.results?.some((h) => h.source === "sessions" && /4417/.test(h.snippet)) && all.value.provider !== undefined && !all.value.disabled, shown(all));
  const files = await tool(t, "q3", "memory_search", { query: "where is the barge Heron moored", corpus: "memory" });
  const note = files.value.results?.find((h) => h.path === "memory/2026-11-02.md");
  check("memory: and files, with lines and a source", note && note.startLine >= 1 && note.endLine <= 4 && note.score > 0 && note.score <= 1 && /Source: memory\/2026-11-02\.md#L/.test(note.snippet) && files.value.results.every((h) => h.source === "memory"), shown(files));
  const garage = await tool(t, "q3", "memory_search", { query: "what is the garage code", corpus: "all" });
  check("memory: MEMORY.md is found in a direct conversation", paths(garage).includes("MEMORY.md"), shown(garage));
  const only = await tool(t, "q3", "memory_search", { query: "launch code of the drone", corpus: "sessions" });
  check("memory: corpus sessions finds messages only", only.value.results?.length > 0 && only.value.results.every((h) => h.source === "sessions"), shown(only));
  const read = await tool(t, "q3", "memory_get", { path: "memory/2026-11-02.md", from: 3, lines: 1 });
  check("memory: memory_get reads the lines it is asked for", read.value.status === "ok" && /pier 7/.test(read.value.text) && read.value.from === 3, shown(read));
  const message = await tool(t, "q3", "memory_get", { path: only.value.results?.find((h) => /4417/.test(h.snippet))?.path ?? "none" });
  check("memory: and a message by the path of its hit", message.value.status === "ok" && /4417/.test(message.value.text), shown(message));
  const missing = await tool(t, "q3", "memory_get", { path: "memory/1999-01-01.md" });
  const outside = await tool(t, "q3", "memory_get", { path: "../state/openclaw.json" });
  check("memory: a missing file is not_found, and nothing outside is read", missing.value.status === "not_found" && outside.value.status !== "ok" && !/sk-scripted/.test(outside.text), shown(missing) + shown(outside));

  const group = await tool(t, GROUP, "memory_search", { query: "launch code of the drone, garage code", corpus: "all" });
  const groupRead = await tool(t, GROUP, "memory_get", { path: message.value.path ?? "none" });
  check("memory: a group gets neither a direct session's message nor the owner's file", Array.isArray(group.value.results) && !/4417/.test(group.text) && group.value.results.every((h) => h.source === "sessions" && h.sessionKey === GROUP) && groupRead.value.status !== "ok", shown(group) + shown(groupRead));

  fs.writeFileSync(path.join(host.dir, "ws-main", "memory", "2026-11-03.md"), "The new rudder was ordered at Svensson.\n");
  for (const about of ["the weather", "soup with dumplings"]) await turn("gateway", "q4", `Let us talk about ${about}. ${"It goes on and on. ".repeat(80)}`);
  await host.openclaw(["sessions", "compact", "agent:main:explicit:q4"]);
  const synced = () => JSON.parse(fs.readFileSync(path.join(host.data, "host", "main.json"), "utf8")).synced?.reason;
  check("memory: a compaction has the index brought up to date", (await until(() => synced() === "post-compaction", 20)) === true, synced());
  const rudder = await tool(t, "q4", "memory_search", { query: "who has the rudder on order", corpus: "memory" });
  check("memory: and a new note is found", /Svensson/.test(rudder.text), shown(rudder));
  check("memory: no tool was refused for its name", !/tool name conflict/.test(host.gatewayLog()), "");
}

async function withoutCore(t) {
  await t.configure((c) => (c.plugins.entries["memory-core"] = { enabled: false }));
  const all = await tool(t, "q5", "memory_search", { query: "launch code of the drone" });
  t.check("memory: with memory-core disabled Hark answers", all.value.results?.some((h) => /4417/.test(h.snippet)) && !all.value.disabled, shown(all));
}

async function slotOnly(t) {
  const { check, turn } = t;
  await t.configure((c) => (c.plugins.slots.contextEngine = "legacy"));
  const told = await turn("gateway", "q6", "Please remember: the attic key is under the blue flowerpot.");
  check("memory: with OpenClaw's own context engine nothing is recalled by itself, and the section is Hark's", t.recalled(told) === "" && /what was said in earlier conversations/.test(systemOf(told.first)), systemOf(told.first).slice(-2000));
  const found = await tool(t, "q7", "memory_search", { query: "where is the attic key", corpus: "sessions" });
  check("memory: memory_search finds what was said meanwhile", /flowerpot/.test(found.text), shown(found));
  const before = await tool(t, "q7", "memory_search", { query: "launch code of the drone", corpus: "sessions" });
  check("memory: and what was said before", /4417/.test(before.text), shown(before));
}

async function backAgain(t) {
  const { check, turn } = t;
  await t.configure((c) => {
    c.plugins.slots = { contextEngine: "hark" };
    delete c.plugins.entries.hark.config;
    delete c.plugins.entries["memory-core"];
  });
  const asked = await turn("gateway", "q8", "Where is the attic key?");
  check("memory: back beside memory-core, recall knows what was said in between", /flowerpot/.test(t.recalled(asked)), asked.text.slice(-1500));
  const all = await tool(t, "q8", "memory_search", { query: "launch code drone", corpus: "all" });
  check("memory: and memory-core answers again, with Hark's messages", both(all.tools, ["hark_search", "memory_search"]) && all.value.results?.some((h) => h.corpus === "hark" && /4417/.test(h.snippet)), shown(all));
}

// The commands

async function commands({ host, check }) {
  const json = (out) => JSON.parse(out.slice(out.indexOf("{")));
  const first = json(await host.openclaw(["hark", "import", "--json"]));
  const [status, second, memory, doctor] = await Promise.all([
    host.openclaw(["hark", "status", "--json"]),
    host.openclaw(["hark", "import", "--json"]),
    host.openclaw(["hark", "memory", "search", "barge Heron", "--json"]),
    host.openclaw(["plugins", "doctor"]),
  ]);
  check("openclaw hark status shows the store the agents use", json(status).messages > 20, status.slice(0, 800));
  const main = (r) => r.agents.find((a) => a.agent === "main");
  check("openclaw hark import takes in every session, and again nothing", main(first).sessions > 5 && main(first).files >= 3 && second && main(json(second)).messages === 0 && main(json(second)).problems.length === 0, JSON.stringify(first) + second);
  check("openclaw hark memory search answers in the tool's shape", json(memory).results?.some((h) => h.path === "memory/2026-11-02.md" && h.source === "memory"), memory.slice(0, 800));
  check("openclaw plugins doctor has nothing to say of Hark", !/hark/i.test(doctor.replaceAll(host.dir, "")), doctor);
}
