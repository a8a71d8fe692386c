/** Accounts on Redis that no name leads to: lists of accounts, and all that works from them, miss these. */
import type { AccountTag } from "../../values/key.ts";
import { StoreError } from "../contract.ts";
import type { AccountName } from "../records.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, accountOf, NAME_INDEX, NAMES_IN_ORDER } from "./keys.ts";
import type { Scripts } from "./scripts.ts";

/** Names that one script looks up, and accounts that are read at once. */
const AT_ONCE = 100;

/** Those of the accounts with these keys that have lines, or have lost their hash, and are not found by a name of their own. */
export async function unlistedOf(
  runner: Runner,
  scripts: Scripts,
  keys: readonly string[],
): Promise<readonly AccountName[]> {
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
 * Undefined for an account without a line: a crash in the middle of its creation leaves such an account, and nobody
 * knows of it.
 */
async function nameOf(runner: Runner, tag: AccountTag): Promise<AccountName | undefined> {
  try {
    const [name, seq] = await runner.step((redis) => redis.hmget(accountKey(tag), ["name", "seq"]));
    return seq === "0" ? undefined : { name: name ?? "", tag };
  } catch (error) {
    // Another type of key: its audit says so, if a name leads to it.
    if (error instanceof StoreError && error.outcome === "refused") return { name: "", tag };
    throw error;
  }
}
