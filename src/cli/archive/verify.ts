/**
 * `tollgate ledger verify --archive`: verifies the files of the archive, from the first line to the opening line that
 * replaces them in the store. A chain of digests covers every member of every line; its last link is in the opening
 * line. The lines are checked like those in the store.
 */
import { basename } from "node:path";
import { chainedText, type LineChain, newChain } from "../../store/ledger/line-chain.ts";
import { type OpeningFacts, readOpening } from "../../store/ledger/opening.ts";
import { textOf } from "../../store/ledger/plain-line.ts";
import { LedgerWalk } from "../../store/ledger/walk.ts";
import type { LedgerLine } from "../../store/records.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { AccountTag } from "../../values/key.ts";
import type { AdminClient } from "../admin-client.ts";
import { CliFailure } from "../failure.ts";
import type { Terminal } from "../output/terminal.ts";
import { type ArchiveFile, type ArchiveHeading, listArchive, readFaulty } from "./files.ts";
import { allAccounts, readLines } from "./lines.ts";

export interface ArchiveVerdict {
  /** Lines in the files. */
  readonly lines: number;
  /** By account, in the form of the admin API's verification: the findings that are kept, and the total number. */
  readonly findings: ReadonlyMap<string, { readonly kept: readonly JsonObject[]; readonly count: number }>;
  /** What could not be verified but is not a fault; one sentence each. */
  readonly notes: readonly string[];
}

/** Verifies the files of one account or of all. */
export async function verifyArchive(
  admin: AdminClient,
  dir: string,
  account: string | undefined,
  terminal: Terminal,
): Promise<ArchiveVerdict> {
  const files = await listArchive(dir);
  const strangers = new Set(files.map((file) => file.account));
  const findings = new Map<string, { kept: readonly JsonObject[]; count: number }>();
  const notes: string[] = [];
  let lines = 0;
  for await (const name of account === undefined ? allAccounts(admin) : [account]) {
    const { id, tag, lines: head } = await readLines(admin, name, 0, 1);
    strangers.delete(id);
    const own = files.filter((file) => file.account === id);
    const chainWalk = new ArchiveWalk(id, tag as AccountTag, head[0]);
    for (const file of own) {
      terminal.progress(`In the archive: ${name}, file ${basename(file.path)}`);
      await chainWalk.addFile(file);
    }
    await chainWalk.end(admin, name);
    lines += chainWalk.lines;
    notes.push(...chainWalk.notes.map((note) => `Account ${name}: ${note}`));
    const { walk } = chainWalk;
    if (walk.findingCount === 0) continue;
    const kept = walk.findings.map(({ check, line, what }) => ({
      ...{ check, line: line ?? null, about: null, what: `In the archive: ${what}` },
    }));
    findings.set(name, { kept, count: walk.findingCount });
  }
  if (account === undefined && strangers.size > 0) {
    notes.push(
      `The folder has files of accounts that this gateway does not have: ${[...strangers].sort().join(", ")}.`,
    );
  }
  return { lines, findings, notes };
}

/** Verifies the files of one account in the order of their lines. */
class ArchiveWalk {
  readonly walk: LedgerWalk;
  readonly notes: string[] = [];
  lines = 0;
  /** The store's first line, if it is an opening line, and its facts. */
  readonly #head: LedgerLine | undefined;
  readonly #facts: OpeningFacts | undefined;
  /** Lines in the files that the store has not removed yet. */
  readonly #inBoth = new Map<number, string>();
  #seq = 0;
  /** The chain of the lines read so far. */
  #link: LineChain;
  /** The same up to the store's first line. */
  #linkOfArchive: LineChain | undefined;
  #filesWithoutDigest = 0;

  constructor(account: string, tag: AccountTag, head: LedgerLine | undefined) {
    this.walk = new LedgerWalk(tag);
    this.#head = head?.kind === "opening" ? head : undefined;
    this.#facts = this.#head && readOpening(this.#head.memo);
    this.#link = newChain(account, this.#facts?.chain?.from ?? this.#opened + 1);
  }

  async addFile(file: ArchiveFile): Promise<void> {
    const { first, last } = file;
    const read = await readFaulty(file).catch((error: unknown) => {
      if (!(error instanceof CliFailure)) throw error;
      this.walk.find("archive_file", error.message);
      return undefined;
    });
    if (first > this.#seq + 1) this.walk.find("archive_gap", `Lines ${this.#seq + 1} to ${first - 1} are in no file.`);
    if (first <= this.#seq) {
      this.walk.find("archive_twice", `Lines ${first} to ${Math.min(last, this.#seq)} are in two files.`);
    }
    this.#seq = Math.max(this.#seq, last);
    if (!read) return;
    for (const fault of read.faults) this.walk.find("archive_file", `The file ${basename(file.path)} ${fault}.`);
    if (read.chain) this.#follow(file, read.chain);
    else this.#withoutDigest(file);
    for (const { line, text } of read.lines) this.#add(line, text);
  }

  /** Number of the last line that the store has removed. */
  get #opened(): number {
    return this.#head?.seq ?? 0;
  }

  /**
   * A file without a digest is valid only if the store's chain does not cover its lines: then the version without
   * digests wrote it.
   */
  #withoutDigest({ path, first, last }: ArchiveFile): void {
    const from = this.#facts?.chain?.from;
    if (from === undefined || last < from || first > this.#opened) {
      this.#filesWithoutDigest += 1;
      return;
    }
    const what = `has no digest in its heading, but it was written with one: the store's chain begins with line ${from}`;
    this.walk.find("archive_file", `The file ${basename(path)} ${what}.`);
  }

  /** Checks that the digest before a file matches the lines that were read before it. */
  #follow({ path, first }: ArchiveFile, { from, before }: ArchiveHeading["chain"]): void {
    // A gateway of the version without digests archived these.
    if (first <= this.#opened && !this.#facts?.chain) return;
    if (from === this.#link.from && (first < from || before === this.#link.sha256)) return;
    const what = "does not continue the lines before it: either it or they are not what was archived";
    this.walk.find("archive_chain", `The file ${basename(path)} ${what}.`);
  }

  #add(line: LedgerLine | undefined, text: string): void {
    this.lines += 1;
    if (!line) return;
    if (line.seq >= this.#link.from) this.#link = chainedText(this.#link, text);
    if (line.seq > this.#opened) {
      this.#inBoth.set(line.seq, text);
      return;
    }
    this.walk.add(line);
    this.#linkOfArchive = this.#link;
  }

  /** Compares with the store: with the opening line, and with lines that are in both. */
  async end(admin: AdminClient, name: string): Promise<void> {
    this.walk.end();
    if (this.#head) this.#endAt(this.#head);
    let after = this.#opened;
    for (let more = true; more && this.#inBoth.size > 0; ) {
      const page = await readLines(admin, name, after);
      for (const line of page.lines) this.#compare(line);
      after = page.lines.at(-1)?.seq ?? after;
      more = page.more;
    }
    const [missing] = this.#inBoth.keys();
    if (missing !== undefined) this.walk.find("archive_line", "The line is in a file but not in the store.", missing);
    if (this.#filesWithoutDigest > 0) {
      this.notes.push(
        `${this.#filesWithoutDigest} files are from a version without digests; their lines are verified by their sums.`,
      );
    }
  }

  #endAt(head: LedgerLine): void {
    if (this.walk.seq < head.seq) {
      const what = `Lines ${this.walk.seq + 1} to ${head.seq} are neither in the files nor in the store.`;
      this.walk.find("archive_gap", what);
      return;
    }
    this.walk.add(head);
    const recorded = this.#facts?.chain;
    if (!recorded) {
      this.notes.push(`Lines 1 to ${head.seq} were archived without a digest; they are verified by their sums.`);
      return;
    }
    if (recorded.from > 1) {
      this.notes.push(
        `Lines 1 to ${recorded.from - 1} were archived without a digest; they are verified by their sums.`,
      );
    }
    if (this.#linkOfArchive?.sha256 === recorded.sha256) return;
    const what = "The lines in the files are not what was archived: the opening line has another digest.";
    this.walk.find("archive_chain", what);
  }

  #compare(line: LedgerLine): void {
    const archived = this.#inBoth.get(line.seq);
    this.#inBoth.delete(line.seq);
    if (archived !== undefined && archived !== textOf(line)) {
      this.walk.find("archive_line", "The line in the file differs from the one in the store.", line.seq);
    }
  }
}
