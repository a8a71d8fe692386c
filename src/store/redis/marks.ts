/**
 * Settled marks on Redis, and accounts that no name leads to: keys that nothing lists, found by going through all keys of the database, a part at a
 * time.
 */
import type { AccountTag } from "../../values/key.ts";
import { StoreError } from "../contract.ts";
import type { DoubtfulMark, MarksPage } from "../figures.ts";
import type { ScanPlace } from "./connection/connect.ts";
import type { Runner } from "./connection/runner.ts";
import { ACCOUNTS_WHOLE, ledgerKey, settledKey, settledNames, wholePattern } from "./keys.ts";
import type { Scripts } from "./scripts.ts";
import { unlistedOf } from "./unlisted.ts";

/** Marks of one account that one script looks at. */
const SCRIPT_MARKS = 100;
/** Scripts that are under way at once. */
const SCRIPTS_AT_ONCE = 16;

/** A part of all keys: one SCAN, and short scripts for the accounts that have keys in it. */
export async function pageMarks(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag | undefined,
  cursor: string | undefined,
): Promise<MarksPage> {
  const pattern = tag === undefined ? ACCOUNTS_WHOLE : wholePattern(tag);
  const { keys, next } = await runner.step((redis) => redis.scan(pattern, placeOf(cursor)));
  const asks = portionsByAccount(keys);
  const items: DoubtfulMark[] = [];
  for (let at = 0; at < asks.length; at += SCRIPTS_AT_ONCE) {
    const some = asks.slice(at, at + SCRIPTS_AT_ONCE);
    const found = await Promise.all(some.map(([of, ids]) => doubtfulOf(runner, scripts, of, ids)));
    items.push(...found.flat());
  }
  const unlisted = await unlistedOf(runner, scripts, keys);
  return { items, unlisted, next: next && `${next.primary}:${next.cursor}` };
}

/** Marks that Redis cannot read are doubtful all. */
async function doubtfulOf(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  ids: readonly string[],
): Promise<DoubtfulMark[]> {
  const keys = [ledgerKey(tag), ...ids.map((id) => settledKey(tag, id))];
  const doubtful = await runner.script(scripts["marks-read"], keys, ids).catch((error: unknown) => {
    if (error instanceof StoreError && error.outcome === "refused") return ids;
    throw error;
  });
  return (doubtful as string[]).map((requestId) => ({ tag, requestId }));
}

function portionsByAccount(keys: readonly string[]): [AccountTag, string[]][] {
  const named = [...new Set(keys)].map(settledNames).filter((names) => names !== undefined);
  return [...Map.groupBy(named, ({ tag }) => tag)].flatMap(([tag, marks]) =>
    Array.from({ length: Math.ceil(marks.length / SCRIPT_MARKS) }, (_, at): [AccountTag, string[]] => [
      tag,
      marks.slice(at * SCRIPT_MARKS, (at + 1) * SCRIPT_MARKS).map(({ requestId }) => requestId),
    ]),
  );
}

/** @throws RangeError for a text that is no cursor of ours. */
function placeOf(cursor: string | undefined): ScanPlace | undefined {
  if (cursor === undefined) return undefined;
  const [, primary, place] = /^(\d{1,4}):(\d{1,20})$/.exec(cursor) ?? [];
  if (primary === undefined || place === undefined) throw new RangeError("store: a cursor of marks is malformed");
  return { primary: Number(primary), cursor: place };
}
