// SQLite with FTS5 and sqlite-vec, fused by reciprocal rank: the way OpenClaw's own memory search
// works. It reads what "hark bench --dump" wrote and prints one line of JSON.
//
//   node sqlite.mjs FOLDER
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import readline from "node:readline";
import Database from "better-sqlite3";
import * as sqliteVec from "sqlite-vec";

const from = process.argv[2];
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "peers-sqlite-"));
const file = path.join(dir, "memory.sqlite");
const meta = JSON.parse(fs.readFileSync(path.join(from, "meta.json"), "utf8"));

const open = () => {
  const db = new Database(file);
  sqliteVec.load(db);
  db.pragma("journal_mode = WAL");
  return db;
};
const lines = (name) => readline.createInterface({ input: fs.createReadStream(path.join(from, name)) });
const vector = (buf, i) => buf.subarray(i * meta.dim * 4, (i + 1) * meta.dim * 4);
const cpu = () => {
  const u = process.cpuUsage();
  return (u.user + u.system) / 1000;
};
const now = () => Number(process.hrtime.bigint()) / 1e6;

// Import.
let db = open();
db.exec(`CREATE TABLE chunks(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
  CREATE VIRTUAL TABLE words USING fts5(text, content='chunks', content_rowid='id');
  CREATE VIRTUAL TABLE vectors USING vec0(embedding float[${meta.dim}] distance_metric=cosine)`);
const addText = db.prepare("INSERT INTO chunks(id, text) VALUES(?, ?)");
const addWords = db.prepare("INSERT INTO words(rowid, text) VALUES(?, ?)");
const addVector = db.prepare("INSERT INTO vectors(rowid, embedding) VALUES(?, ?)");
const texts = fs.readFileSync(path.join(from, "texts.f32"));
const started = now();
let n = 0;
db.exec("BEGIN");
for await (const line of lines("texts.jsonl")) {
  const { id, text } = JSON.parse(line);
  addText.run(id, text);
  addWords.run(id, text);
  const v = vector(texts, n);
  if (v.some((b) => b !== 0)) addVector.run(BigInt(id), v);
  if (++n % 1000 === 0) db.exec("COMMIT; BEGIN");
}
db.exec("COMMIT");
const importMs = now() - started;
db.close();

// Open again and ask.
const questions = [];
for await (const line of lines("questions.jsonl")) questions.push(JSON.parse(line));
const asked = fs.readFileSync(path.join(from, "questions.f32"));
const opening = now();
db = open();
const byWords = db.prepare(
  "SELECT rowid AS id FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT 50");
const byVector = db.prepare("SELECT rowid AS id FROM vectors WHERE embedding MATCH ? AND k = 50");
const textOf = db.prepare("SELECT text FROM chunks WHERE id = ?");

// The words of a question, each quoted, joined by OR.
const match = (text) =>
  [...new Set(text.match(/[\p{L}\p{N}_]+/gu) ?? [])].map((w) => `"${w}"`).join(" OR ");

const search = (i) => {
  const score = new Map();
  const rank = (rows) => rows.forEach((r, k) => score.set(Number(r.id), (score.get(Number(r.id)) ?? 0) + 1 / (60 + k + 1)));
  const words = match(questions[i].text);
  if (words) rank(byWords.all(words));
  const v = vector(asked, i);
  if (v.some((b) => b !== 0)) rank(byVector.all(v));
  const top = [...score].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 10);
  return top.map(([id]) => textOf.get(id).text);
};

search(0);
const coldMs = now() - opening;
const wall = [];
const used = [];
let found = 0;
for (let i = 0; i < questions.length; i++) {
  const t = now();
  const c = cpu();
  const hits = search(i);
  wall.push(now() - t);
  used.push(cpu() - c);
  if (hits.includes(questions[i].source)) found++;
}
const kept = db.prepare("SELECT count(*) AS n FROM chunks").get().n;
const versions = db.prepare("SELECT sqlite_version() AS s, vec_version() AS v").get();
db.close();
const disk = fs.readdirSync(dir).reduce((sum, f) => sum + fs.statSync(path.join(dir, f)).size, 0);
fs.rmSync(dir, { recursive: true });
const at = (list, share) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))];
console.log(JSON.stringify({
  name: `SQLite ${versions.s} FTS5 + sqlite-vec ${versions.v} + RRF`,
  texts: n, lost: n - kept, import_s: importMs / 1000, cold_open_ms: coldMs,
  cpu_p50_ms: at(used, 0.5), cpu_p95_ms: at(used, 0.95), wall_p50_ms: at(wall, 0.5), wall_p95_ms: at(wall, 0.95),
  disk_mib: disk / 2 ** 20, self_found: found / questions.length,
  resident_mib: process.memoryUsage().rss / 2 ** 20,
}));
