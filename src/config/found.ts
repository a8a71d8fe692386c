/** Reads files that may be missing, and recognizes whether one has changed since. */
import { createHash } from "node:crypto";
import { readFileSync, type Stats, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { LIMITS } from "./defaults.ts";

/** What was found at a path: the text of a regular file, or an error code. */
export type FileContent = { readonly text: string } | { readonly code: string };

/**
 * Why a path is not read; undefined if it is. A larger file than a configuration may be is not read: it would be read,
 * decoded and hashed once a second on the event loop, where 300 MB take more than a second.
 */
function unreadOf(stats: Stats): string | undefined {
  if (!stats.isFile()) return "not a file";
  return stats.size > LIMITS.fileBytesMax ? `larger than ${LIMITS.fileBytesMax} bytes` : undefined;
}

/** Whether a path can be read repeatedly. Reading a pipe consumes its content and waits for a writer. */
export function isReadable(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    // A missing file is reported when it is read.
    return true;
  }
}

/** Reads without blocking the event loop. */
export async function findLater(path: string): Promise<FileContent> {
  try {
    const unread = unreadOf(await stat(path));
    return unread === undefined ? { text: await readFile(path, "utf8") } : { code: unread };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

/**
 * Reads a file at a start, when a pipe can be read as well.
 * @throws an error with a `code`, as `node:fs` does.
 */
export function readFirst(path: string): string {
  const stats = statSync(path);
  const unread = stats.isFile() ? unreadOf(stats) : undefined;
  if (unread !== undefined) throw Object.assign(new Error(`${path} is ${unread}`), { code: unread });
  return readFileSync(path, "utf8");
}

/** @param readOnce texts that were read before and cannot be read again. */
export function findNow(path: string, readOnce: ReadonlyMap<string, string>): FileContent {
  const kept = readOnce.get(path);
  if (kept !== undefined) return { text: kept };
  try {
    const unread = unreadOf(statSync(path));
    return unread === undefined ? { text: readFileSync(path, "utf8") } : { code: unread };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

export function digest(found: FileContent): string {
  const content = "text" in found ? `text ${found.text}` : `code ${found.code}`;
  return createHash("sha256").update(content).digest("base64");
}

export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "unreadable";
