/** The arguments a model gave a tool. Providers do not enforce schemas, so everything is checked. */

export class BadArgument extends Error {}

export class Arguments {
  private readonly raw: Record<string, unknown>;

  constructor(raw: unknown) {
    this.raw = typeof raw === "object" && raw !== null ? (raw as Record<string, unknown>) : {};
  }

  text(name: string): string {
    const v = this.raw[name];
    if (typeof v === "string" && v.trim() !== "") return v.trim();
    throw new BadArgument(`${name} is missing: it has to be a text`);
  }

  /** A whole number of at least 1, lowered to `most`; undefined where none was given. Texts of digits count. */
  whole(name: string, most: number, least = 1): number | undefined {
    const v = this.number(name);
    if (v === undefined) return undefined;
    if (!Number.isInteger(v) || v < least) throw new BadArgument(`${name} has to be a whole number from ${least}`);
    return Math.min(v, most);
  }

  number(name: string): number | undefined {
    const v = this.raw[name];
    if (v === undefined || v === null || v === "") return undefined;
    const n = typeof v === "string" ? Number(v) : v;
    if (typeof n === "number" && Number.isFinite(n)) return n;
    throw new BadArgument(`${name} has to be a number`);
  }

  /** One of some words. Another word must not widen a search, so it is refused. */
  oneOf<T extends string>(name: string, words: readonly T[]): T | undefined {
    const v = this.raw[name];
    if (v === undefined || v === null || v === "") return undefined;
    if (words.includes(v as T)) return v as T;
    throw new BadArgument(`${name} has to be one of: ${words.join(", ")}`);
  }

  yes(name: string): boolean {
    return this.raw[name] === true || this.raw[name] === "true";
  }
}
