/**
 * Ledger lines in files: gzip, a heading and then one JSON object per line. A file gets its name only when it is
 * complete and on the disk, so every named file in the folder is complete after any crash.
 */

import { open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { crc32, gzip, type InflateRaw, inflateRaw } from "node:zlib";
import { FolderUnusableError, makeFolder } from "../../store/folder-lock.ts";
import { chained, chainedText, type LineChain } from "../../store/ledger/line-chain.ts";
import { fromPlain, textOf } from "../../store/ledger/plain-line.ts";
import type { LedgerLine } from "../../store/records.ts";
import { COMMAND } from "../../values/program/program.ts";
import { CliFailure } from "../failure.ts";

const VERSION = 2;
/** Files of this version have no digest; their lines can still be read. */
const VERSION_WITHOUT_DIGEST = 1;
/** Largest decompressed size of a file: 20,000 lines of at most 40 KB. */
const UNPACKED_BYTES_MAX = 800_000_000;

export interface ArchiveFile {
  readonly path: string;
  /** `acct_<TAG>`. */
  readonly account: string;
  /** Numbers of its first and last line. */
  readonly first: number;
  readonly last: number;
}

/**
 * Files of the archive by account and first line; other files in the folder are ignored.
 * @param isNew whether the folder may not exist yet.
 */
export async function listArchive(dir: string, isNew = false): Promise<ArchiveFile[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (isNew && error.code === "ENOENT") return [];
    if (error.code === "ENOENT") {
      const made = `\`${COMMAND} ledger archive\` creates it with its first file`;
      throw new CliFailure(1, `There is no archive in ${dir} yet: the folder does not exist (${made}).`);
    }
    throw new CliFailure(1, `The archive folder ${dir} cannot be read (${error.code}).`);
  });
  const files = names.flatMap((name) => {
    const match = /^(acct_[0-9A-Za-z]{1,32})\.([0-9]{12})-([0-9]{12})\.ndjson\.gz$/.exec(name);
    if (!match) return [];
    const [, account = "", first, last] = match;
    return [{ path: join(dir, name), account, first: Number(first), last: Number(last) }];
  });
  return files.sort((a, b) => (a.account === b.account ? a.first - b.first : a.account < b.account ? -1 : 1));
}

/** The first line of a file. */
export interface ArchiveHeading {
  readonly tollgate_ledger: typeof VERSION;
  readonly account: string;
  readonly first: number;
  readonly last: number;
  /** The chain of all lines of the account: before the file's first line, and after its last one. */
  readonly chain: { readonly from: number; readonly before: string; readonly after: string };
}

/**
 * Writes consecutive lines, at least one. They are durable when it resolves.
 * @param before the chain of the lines before them.
 */
export async function writeArchive(
  dir: string,
  account: string,
  lines: readonly LedgerLine[],
  before: LineChain,
): Promise<ArchiveFile> {
  const [first, last] = [lines[0]?.seq ?? 0, lines.at(-1)?.seq ?? 0];
  const chain = { from: before.from, before: before.sha256, after: chained(before, lines).sha256 };
  const heading: ArchiveHeading = { tollgate_ledger: VERSION, account, first, last, chain };
  const text = [headingText(heading), ...lines.map(textOf)].join("");
  const range = [first, last].map((seq) => `${seq}`.padStart(12, "0")).join("-");
  const path = join(dir, `${account}.${range}.ndjson.gz`);
  const packed = await promisify(gzip)(text);
  const part = `${path}.part`;
  try {
    makeFolder(dir);
    await writeDurably(part, packed);
  } catch (error) {
    // What did not fit must not keep the disk full.
    await rm(part, { force: true }).catch(() => {});
    const { message } = new FolderUnusableError(dir, error);
    throw new CliFailure(
      1,
      `Nothing more was archived: ${message}. Use --to to name another folder, or give this user write permission.`,
    );
  }
  await rename(part, path);
  await syncFolder(dir);
  return { path, account, first, last };
}

function headingText({ tollgate_ledger, account, first, last, chain }: ArchiveHeading): string {
  const { from, before, after } = chain;
  return `${JSON.stringify({ tollgate_ledger, account, first, last, chain: { from, before, after } })}\n`;
}

async function writeDurably(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A file name is durable only after its folder is synced. */
async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** A file as it was read, not yet checked. */
interface ReadFile {
  /** Undefined for a file of the version without digests. */
  readonly chain: ArchiveHeading["chain"] | undefined;
  /** Each line with its text, including the line feed; `line` is undefined if the text is not a valid line. */
  readonly lines: readonly { readonly line: LedgerLine | undefined; readonly text: string }[];
  /** Problems of the file; each completes "the file ...". */
  readonly faults: readonly string[];
}

/** Reads a file and reports everything that is wrong with it. @throws CliFailure if it cannot be read at all */
export async function readFaulty(file: ArchiveFile): Promise<ReadFile> {
  const { account, first, last } = file;
  const [heading = "", ...rest] = (await unpack(file.path)).split("\n");
  const texts = rest.at(-1) === "" ? rest.slice(0, -1) : rest;
  const lines = texts.map((text) => ({ line: fromPlain(parsed(text)), text: `${text}\n` }));
  const head = parsed(heading) as Partial<ArchiveHeading> | undefined;
  const chain = chainOfHeading(head);
  const faults: string[] = [];
  const isOld = (head as { tollgate_ledger?: unknown } | undefined)?.tollgate_ledger === VERSION_WITHOUT_DIGEST;
  const range = { account, first, last };
  const expected = isOld
    ? JSON.stringify({ tollgate_ledger: VERSION_WITHOUT_DIGEST, ...range })
    : chain && headingText({ tollgate_ledger: VERSION, ...range, chain }).trimEnd();
  if (heading !== expected) faults.push("has a heading that does not match its name");
  if (rest.at(-1) !== "") faults.push("does not end with a complete line");
  const inOrder = lines.length === last - first + 1 && lines.every(({ line }, at) => line?.seq === first + at);
  if (!inOrder) faults.push(`does not have lines ${first} to ${last}, each once and in order`);
  const changed = lines.find(({ line, text }) => line && textOf(line) !== text)?.line;
  if (changed) faults.push(`has members in line ${changed.seq} that the archive does not write`);
  if (chain) {
    const before: LineChain = { from: chain.from, sha256: chain.before };
    const after = lines.reduce((link, { text }) => chainedText(link, text), before);
    if (after.sha256 !== chain.after) faults.push("was changed: the digest in its heading does not match its lines");
  }
  return { chain, lines, faults };
}

function chainOfHeading(head: Partial<ArchiveHeading> | undefined): ArchiveHeading["chain"] | undefined {
  const { from, before, after } = (head?.chain ?? {}) as Partial<ArchiveHeading["chain"]>;
  const isOne = Number.isSafeInteger(from) && [before, after].every((link) => /^[0-9a-f]{64}$/.test(String(link)));
  return isOne ? ({ from, before, after } as ArchiveHeading["chain"]) : undefined;
}

/** @throws CliFailure for a file that is damaged or does not match its name */
export async function readArchive(file: ArchiveFile): Promise<LedgerLine[]> {
  const { lines, faults } = await readFaulty(file);
  if (faults[0] !== undefined) throw damaged(file.path, `it ${faults[0]}`);
  return lines.map(({ line }) => line as LedgerLine);
}

async function unpack(path: string): Promise<string> {
  try {
    // Strict: invalid UTF-8 would be read as U+FFFD, which a note may contain.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await gunzipOne(await readFile(path)));
  } catch (error) {
    if (error instanceof CliFailure) throw error;
    throw damaged(path, (error as NodeJS.ErrnoException).code ?? (error as Error).message);
  }
}

/** RFC 1952, section 2.3: identification, method and flags, with no flag set; then time, extra flags and system. */
const GZIP_START = Buffer.from([0x1f, 0x8b, 8, 0]);
const GZIP_HEADER_BYTES = 10;
/** CRC-32 and length of the text. */
const GZIP_END_BYTES = 8;

/**
 * Decompresses a file with exactly one gzip member and nothing after it. `gunzip` would ignore zeros there, and further
 * members that are empty.
 */
async function gunzipOne(bytes: Buffer): Promise<Buffer> {
  if (!bytes.subarray(0, GZIP_START.length).equals(GZIP_START)) throw new Error("not gzip as the archive writes it");
  const packed = bytes.subarray(GZIP_HEADER_BYTES);
  const { text, used } = await new Promise<{ text: Buffer; used: number }>((resolve, reject) => {
    inflateRaw(packed, { maxOutputLength: UNPACKED_BYTES_MAX, info: true }, (error, answer) => {
      if (error) return reject(error);
      // The types do not know `info`.
      const { buffer, engine } = answer as unknown as { buffer: Buffer; engine: InflateRaw };
      resolve({ text: buffer, used: engine.bytesWritten });
    });
  });
  const end = packed.subarray(used);
  if (end.length > GZIP_END_BYTES) throw new Error("there are bytes after its end");
  if (end.length < GZIP_END_BYTES) throw new Error("its end is missing");
  if (end.readUInt32LE(0) !== crc32(text) || end.readUInt32LE(4) !== text.length % 2 ** 32) {
    throw new Error("its checksum does not match");
  }
  return text;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function damaged(path: string, why: string): CliFailure {
  return new CliFailure(1, `The archive file ${path} cannot be used: ${why}.`);
}
