/**
 * Settled marks on Redis. The mark of a charge is looked up by its name. Marks without a line, and accounts that no
 * name leads to, are in no list; a walk through all keys of the database, in parts, finds them.
 */

import type { AccountTag } from "../../values/key.ts";
import { type NanoUsd, nanoUsd } from "../../values/money.ts";
import type { RequestId } from "../../values/request-id.ts";
import { StoreError } from "../contract.ts";
import type { MarksPage, UnprovenMark } from "../figures.ts";
import type { AccountName } from "../records.ts";
import type { ScanPlace } from "./connection/connect.ts";
import type { Runner } from "./connection/runner.ts";
import {
  ACCOUNTS_WHOLE,
  accountKey,
  accountOf,
  holdsKey,
  ledgerKey,
  NAME_INDEX,
  NAMES_IN_ORDER,
  settledKey,
  settledNames,
  wholePattern,
} from "./keys.ts";
import type { Scripts } from "./scripts.ts";

/** Marks of one account that one script examines. */
const SCRIPT_MARKS = 100;
/** Scripts that run at once. */
const SCRIPTS_AT_ONCE = 16;

/** All in one script, which writes nothing. */
export async function settledAmounts(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  ids: readonly RequestId[],
): Promise<readonly (NanoUsd | undefined)[]> {
  const keys = [accountKey(tag), holdsKey(tag), ...ids.map((id) => settledKey(tag, id))];
  const amounts = ((await runner.script(scripts["marks-amounts"], keys, [])) as string).split(" ");
  return ids.map((_, at) => (amounts[at] ? nanoUsd(BigInt(amounts[at])) : undefined));
}

/** A part of all keys: one SCAN, and short scripts for the accounts whose keys are in it. */
export async function pageMarks(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag | undefined,
  cursor: string | undefined,
): Promise<MarksPage> {
  const pattern = tag === undefined ? ACCOUNTS_WHOLE : wholePattern(tag);
  const { keys, next } = await runner.step((redis) => redis.scan(pattern, placeOf(cursor)));
  const asks = portionsByAccount(keys);
  const items: UnprovenMark[] = [];
  for (let at = 0; at < asks.length; at += SCRIPTS_AT_ONCE) {
    const some = asks.slice(at, at + SCRIPTS_AT_ONCE);
    const found = await Promise.all(some.map(([of, ids]) => unprovenOf(runner, scripts, of, ids)));
    items.push(...found.flat());
  }
  const unlisted = await unlistedOf(runner, scripts, keys);
  return { items, unlisted, next: next && `${next.slot}:${next.cursor}:${next.node}` };
}

/** Marks that Redis cannot read all count as doubtful. */
async function unprovenOf(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  ids: readonly string[],
): Promise<UnprovenMark[]> {
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

/** @throws RangeError for a text that is not one of our cursors. */
function placeOf(cursor: string | undefined): ScanPlace | undefined {
  if (cursor === undefined) return undefined;
  const [, slot, place, node] = /^(\d{1,5}):(\d{1,20})(?::(.{0,300}))?$/.exec(cursor) ?? [];
  if (slot === undefined || place === undefined) throw new RangeError("store: a cursor of marks is malformed");
  // A cursor of an earlier version names no server.
  return { slot: Number(slot), cursor: place, node: node ?? "" };
}

/* Accounts on Redis that no name leads to: lists of accounts, and everything that uses these lists, miss them. */

/** Names that one script looks up, and accounts that are read at once. */
const AT_ONCE = 100;

/**
 * Among the accounts with these keys: those that have lines, or have lost their hash, and are not found by a name of
 * their own.
 */
async function unlistedOf(runner: Runner, scripts: Scripts, keys: readonly string[]): Promise<readonly AccountName[]> {
  const tags = [...new Set(keys.map(accountOf).filter((tag) => tag !== undefined))];
  const unlisted: AccountName[] = [];
  for (let at = 0; at < tags.length; at += AT_ONCE) {
    const read = await Promise.all(tags.slice(at, at + AT_ONCE).map((tag) => nameOf(runner, tag)));
    const some = read.filter((account) => account !== undefined);
    if (some.length === 0) continue;
    const values = some.flatMap(({ name, tag }) => [name, tag]);
    const found = await runner.script(scripts["names-read"], [NAME_INDEX, NAMES_IN_ORDER], values);
    unlisted.push(...some.filter(({ tag }) => (found as string[]).includes(tag)));
  }
  return unlisted;
}

/**
 * Undefined for an account without a line: a crash during its creation leaves such an account, and no name refers to
 * it.
 */
async function nameOf(runner: Runner, tag: AccountTag): Promise<AccountName | undefined> {
  try {
    const [name, seq] = await runner.step((redis) => redis.hmget(accountKey(tag), ["name", "seq"]));
    return seq === "0" ? undefined : { name: name ?? "", tag };
  } catch (error) {
    // A key of another type: the account's audit reports it, if a name leads to the account.
    if (error instanceof StoreError && error.outcome === "refused") return { name: "", tag };
    throw error;
  }
}
