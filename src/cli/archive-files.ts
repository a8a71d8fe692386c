/**
 * Ledger lines in files: gzip, one JSON object a line, a heading first. A file has its name only once it is whole and on
 * the disk, so that what stands in the folder can be believed after any crash.
 */
import { mkdir, open, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { fromPlain, textOf } from "../store/plain-line.ts";
import type { LedgerLine } from "../store/records.ts";
import { CliFailure } from "./failure.ts";

const VERSION = 1;
/** The most that one file of ours unpacks to: 20,000 lines of at most 40 KB. */
const UNPACKED_BYTES_MAX = 800_000_000;

export interface ArchiveFile {
  readonly path: string;
  /** `acct_<TAG>`. */
  readonly account: string;
  /** Numbers of its first and last line. */
  readonly first: number;
  readonly last: number;
}

/** Files of the archive by account and first line; whatever else is in the folder is left alone. */
export async function listArchive(dir: string): Promise<ArchiveFile[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
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

/** Writes lines that follow each other, at least one; durable when it resolves. */
export async function writeArchive(dir: string, account: string, lines: readonly LedgerLine[]): Promise<ArchiveFile> {
  const [first, last] = [lines[0]?.seq ?? 0, lines.at(-1)?.seq ?? 0];
  const heading = { tollgate_ledger: VERSION, account, first, last };
  const text = [`${JSON.stringify(heading)}\n`, ...lines.map(textOf)].join("");
  const range = [first, last].map((seq) => `${seq}`.padStart(12, "0")).join("-");
  const path = join(dir, `${account}.${range}.ndjson.gz`);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeDurably(`${path}.part`, await promisify(gzip)(text));
  await rename(`${path}.part`, path);
  await syncFolder(dir);
  return { path, account, first, last };
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

/** A name is durable once its folder is. */
async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** @throws CliFailure for a file that is damaged or says something else than its name */
export async function readArchive({ path, account, first, last }: ArchiveFile): Promise<LedgerLine[]> {
  const text = await unpack(path);
  const [heading = "", ...rest] = text.split("\n");
  const head = parsed(heading) as Record<string, unknown> | undefined;
  const lines = rest.slice(0, -1).map((line) => fromPlain(parsed(line)));
  const whole =
    head?.tollgate_ledger === VERSION &&
    head.account === account &&
    rest.at(-1) === "" &&
    lines.length === last - first + 1 &&
    lines.every((line, index) => line?.seq === first + index);
  if (!whole) throw damaged(path, "its lines are not those that its name tells of");
  return lines as LedgerLine[];
}

async function unpack(path: string): Promise<string> {
  try {
    const bytes = await promisify(gunzip)(await readFile(path), { maxOutputLength: UNPACKED_BYTES_MAX });
    return bytes.toString();
  } catch (error) {
    throw damaged(path, (error as NodeJS.ErrnoException).code ?? "not gzip");
  }
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
