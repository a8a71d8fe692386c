/** Reads files that may be missing, and recognizes whether one has changed since. */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";

/** What was found at a path: the text of a regular file, or an error code. */
export type FileContent = { readonly text: string } | { readonly code: string };

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
    return (await stat(path)).isFile() ? { text: await readFile(path, "utf8") } : { code: "not a file" };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

/** @param readOnce texts that were read before and cannot be read again. */
export function findNow(path: string, readOnce: ReadonlyMap<string, string>): FileContent {
  const kept = readOnce.get(path);
  if (kept !== undefined) return { text: kept };
  if (!isReadable(path)) return { code: "not a file" };
  try {
    return { text: readFileSync(path, "utf8") };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

export function digest(found: FileContent): string {
  const content = "text" in found ? `text ${found.text}` : `code ${found.code}`;
  return createHash("sha256").update(content).digest("base64");
}

export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "unreadable";
