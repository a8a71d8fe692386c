/**
 * The file with what a gateway remembers of its store's history, in the journal's folder. It is replaced as a whole,
 * never in part.
 */
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { KnownEpoch } from "./epoch-verdict.ts";

const FILE = "store-epoch.json";

export interface EpochFile {
  /** By part; empty if there is no file. @throws Error that says what to do about a file that cannot be read. */
  load(): Promise<ReadonlyMap<number, KnownEpoch>>;
  /** Resolves when it is on the disk. */
  save(known: ReadonlyMap<number, KnownEpoch>): Promise<void>;
}

/** @param dir the journal's folder, which exists and is locked by this process. */
export function epochFile(dir: string): EpochFile {
  const path = join(dir, FILE);
  return {
    async load() {
      const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      });
      if (text === undefined) return new Map();
      const known = parse(text);
      if (known) return known;
      const advice = "check that the store has all of its data, then remove the file";
      throw new Error(`${path} cannot be read, so a loss of the store's data would not be noticed; ${advice}`);
    },
    async save(known) {
      const file = await open(`${path}.new`, "w", 0o600);
      try {
        await file.writeFile(`${JSON.stringify({ parts: [...known] })}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(`${path}.new`, path);
      const folder = await open(dir, "r");
      try {
        await folder.sync();
      } finally {
        await folder.close();
      }
    },
  };
}

function parse(text: string): Map<number, KnownEpoch> | undefined {
  try {
    const { parts } = JSON.parse(text) as { parts: unknown };
    if (!Array.isArray(parts) || !parts.every(isPart)) return undefined;
    return new Map(parts);
  } catch {
    return undefined;
  }
}

function isPart(value: unknown): value is [number, KnownEpoch] {
  if (!Array.isArray(value)) return false;
  const [part, known] = value as [unknown, Partial<KnownEpoch> | undefined];
  const counts = [part, known?.count, known?.base, known?.times ?? 0];
  return counts.every(Number.isSafeInteger) && typeof known?.id === "string" && Array.isArray(known.past);
}
