/** `tollgate ledger verify --archive`: a ledger from its very first line, through the files of the archive, into the store. */
import { LedgerWalk } from "../store/ledger-walk.ts";
import { textOf } from "../store/plain-line.ts";
import type { LedgerLine } from "../store/records.ts";
import type { AccountTag } from "../values/key.ts";
import type { AdminClient, Fields } from "./admin-client.ts";
import { allAccounts, readLines } from "./archive-command.ts";
import { type ArchiveFile, listArchive, readArchive } from "./archive-files.ts";

/**
 * Walks the whole chain of one account or of all.
 * @returns one item for each account that does not balance, in the form of the admin API's verification, and how many
 *   lines the files had.
 */
export async function verifyArchive(
  admin: AdminClient,
  dir: string,
  account: string | undefined,
): Promise<{ readonly lines: number; readonly unbalanced: Fields[] }> {
  const files = await listArchive(dir);
  const unbalanced: Fields[] = [];
  let lines = 0;
  for await (const name of account === undefined ? allAccounts(admin) : [account]) {
    const { id, tag } = await readLines(admin, name, 0, 1);
    const own = files.filter((file) => file.account === id);
    lines += own.reduce((sum, { first, last }) => sum + last - first + 1, 0);
    const walk = await walkThrough(admin, name, tag as AccountTag, own);
    if (walk.findingCount === 0) continue;
    const findings = walk.findings.map(({ line, what }) => ({ line: line ?? null, what: `In the archive: ${what}` }));
    unbalanced.push({ account: name, outcome: "unbalanced", findings, finding_count: walk.findingCount });
  }
  return { lines, unbalanced };
}

/** Files up to where the store's own lines begin; what both have must be the same. */
async function walkThrough(
  admin: AdminClient,
  account: string,
  tag: AccountTag,
  files: readonly ArchiveFile[],
): Promise<LedgerWalk> {
  const walk = new LedgerWalk(tag);
  const [head] = (await readLines(admin, account, 0, 1)).lines;
  const opened = head?.kind === "opening" ? head.seq : 0;
  const inBoth = new Map<number, string>();
  for (const file of files) {
    for (const line of await readArchive(file)) {
      if (line.seq <= opened) walk.add(line);
      else inBoth.set(line.seq, textOf(line));
    }
  }
  walk.end();
  if (walk.seq < opened) {
    walk.find(`Lines ${walk.seq + 1} to ${opened} are neither in the files nor in the store.`);
  }
  for (let after = 0; ; ) {
    const { lines } = await readLines(admin, account, after);
    for (const line of lines) judge(walk, line, inBoth);
    after = lines.at(-1)?.seq ?? after;
    if (lines.length < 1_000) break;
  }
  walk.end();
  return walk;
}

function judge(walk: LedgerWalk, line: LedgerLine, inBoth: Map<number, string>): void {
  const archived = inBoth.get(line.seq);
  if (archived !== undefined && line.kind !== "opening" && archived !== textOf(line)) {
    walk.find("The line in the file is not the one in the store.", line.seq);
  }
  walk.add(line);
}
