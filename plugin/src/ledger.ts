/**
 * When Hark last served and last stored a turn of an agent, and why it last did not: one small file an
 * agent in the data folder, for `hark doctor`. A host that passes Hark by says nothing; this shows it.
 */

import fs from "node:fs";
import path from "node:path";

export interface Entry {
  agent: string;
  served?: string; // RFC 3339
  committed?: string;
  failed?: { at: string; what: string };
  synced?: { at: string; reason: string }; // of the memory files, in the memory slot
}

export class Ledger {
  private readonly dir: string;
  private readonly dataDir: string;

  constructor(dataDir: string) {
    this.dataDir = dataDir;
    this.dir = path.join(dataDir, "host");
  }

  served(agent: string): void {
    this.note(agent, { served: new Date().toISOString() });
  }

  committed(agent: string): void {
    this.note(agent, { committed: new Date().toISOString() });
  }

  failed(agent: string, what: string): void {
    this.note(agent, { failed: { at: new Date().toISOString(), what: what.slice(0, 500) } });
  }

  synced(agent: string, reason: string): void {
    this.note(agent, { synced: { at: new Date().toISOString(), reason: reason.slice(0, 100) } });
  }

  /** Writes as a whole, so that no reader sees a part. A folder that cannot be written costs nothing. */
  private note(agent: string, what: Partial<Entry>): void {
    try {
      if (!fs.existsSync(this.dataDir)) return;
      fs.mkdirSync(this.dir, { mode: 0o700, recursive: true });
      const file = path.join(this.dir, encodeURIComponent(agent) + ".json");
      const next = `${file}.${process.pid}`;
      fs.writeFileSync(next, JSON.stringify({ ...read(file), agent, ...what }) + "\n", { mode: 0o600 });
      fs.renameSync(next, file);
    } catch {
      // The turn matters, the note does not.
    }
  }
}

function read(file: string): Partial<Entry> {
  try {
    const value: unknown = JSON.parse(fs.readFileSync(file, "utf8"));
    return typeof value === "object" && value !== null ? (value as Partial<Entry>) : {};
  } catch {
    return {};
  }
}
