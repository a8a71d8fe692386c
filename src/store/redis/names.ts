/**
 * Accounts and their names on Redis. An account and the index of names are in different slots, so no single script
 * writes both. The account's own record has its name. The index leads to the account, and may do so by two names for a
 * moment.
 */
import { randomBytes } from "node:crypto";
import type { AccountTag } from "../../values/key.ts";
import { PAGE_MAX, pageSize } from "../checks.ts";
import type { Account, AccountName, Page } from "../records.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, NAME_INDEX, NAMES_IN_ORDER } from "./keys.ts";
import { ACCOUNT_FIELDS, type HashFields, toAccount } from "./records.ts";
import type { Scripts } from "./scripts.ts";

/**
 * Writes the account first, then its name in the index, which decides between two with the same name; the loser's
 * account is removed. A crash between the two leaves an account without a name.
 */
export async function createAccount(
  runner: Runner,
  scripts: Scripts,
  account: { tag: AccountTag; name: string; plan: string },
): Promise<Account | "exists"> {
  const nonce = randomBytes(12).toString("hex");
  const key = accountKey(account.tag);
  const made = await runner.script(scripts["account-create"], [key], [account.name, account.plan, nonce]);
  if (made === "exists") return "exists";
  const owner = await takeName(runner, scripts, "name-reserve", account);
  if (made === "same") return "exists";
  if (owner !== account.tag) {
    await runner.script(scripts["account-drop"], [key], [nonce]);
    return "exists";
  }
  return (await readAccount(runner, account.tag)) ?? "exists";
}

/** Takes a name and returns its owner. A rename to or from this name that was cut off does not block it. */
async function takeName(
  runner: Runner,
  scripts: Scripts,
  script: "name-reserve" | "name-claim",
  { name, tag }: AccountName,
): Promise<AccountTag> {
  const index = script === "name-claim" ? [NAME_INDEX] : [NAME_INDEX, NAMES_IN_ORDER];
  const take = async () => (await runner.script(scripts[script], index, [name, tag])) as AccountTag;
  const owner = await take();
  if (owner === tag) return owner;
  const [reply, from = "", to = ""] = await renameStep(runner, scripts, owner, ["yield", name]);
  if (reply === "free") await moveName(runner, scripts, owner, name, "");
  else if (reply === "behind") await finishRename(runner, scripts, owner, { from, to });
  else return owner;
  return take();
}

/** Maximum attempts of a rename: it is retried after finishing another rename that was cut off. */
const RENAME_ATTEMPTS_MAX = 4;

/**
 * The steps of a rename, each of which may be repeated:
 *
 *   begin    the account records the old and the new name
 *   claim    the index leads to it by the new name too, unless another account has that name
 *   end      the account gets the new name: the rename takes effect here
 *   move     the index lists the new name in order, and the old one is free
 *   done     the record of the rename is removed
 *
 * Before `end`, another rename, or anybody who wants the name, may remove the record. After it, anybody may finish the
 * rename.
 */
export async function renameAccount(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  name: string,
  replayed?: number,
): Promise<Account | "taken" | undefined> {
  const again = `${replayed ?? ""}`;
  for (let attempt = 0; attempt < RENAME_ATTEMPTS_MAX; attempt++) {
    const [reply, from = "", to = ""] = await renameStep(runner, scripts, tag, ["begin", name, again]);
    if (reply === "behind") {
      await finishRename(runner, scripts, tag, { from, to });
      continue;
    }
    if (reply !== "begun") break;
    // The name that an earlier try, to another name, has claimed.
    if (to !== "" && to !== name) await moveName(runner, scripts, tag, to, "");
    if ((await takeName(runner, scripts, "name-claim", { name, tag })) !== tag) {
      await renameStep(runner, scripts, tag, ["done", from, name]);
      return "taken";
    }
    const [ended] = await renameStep(runner, scripts, tag, ["end", from, name, again]);
    if (ended === "renamed") await finishRename(runner, scripts, tag, { from, to: name });
    else await giveBack(runner, scripts, { name, tag });
    break;
  }
  return readAccount(runner, tag);
}

async function renameStep(runner: Runner, scripts: Scripts, tag: AccountTag, values: string[]): Promise<string[]> {
  return (await runner.script(scripts["account-rename"], [accountKey(tag)], values)) as string[];
}

/** Removes a name that leads to the account, and adds `to` to the lists; empty: none. */
async function moveName(runner: Runner, scripts: Scripts, tag: AccountTag, old: string, to: string): Promise<void> {
  await runner.script(scripts["name-move"], [NAME_INDEX, NAMES_IN_ORDER], [old, to, tag]);
}

async function finishRename(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  { from, to }: { from: string; to: string },
): Promise<void> {
  if (from !== to) await moveName(runner, scripts, tag, from, to);
  await renameStep(runner, scripts, tag, ["done", from, to]);
}

/** Removes a name that was entered for an account whose name has changed meanwhile. */
async function giveBack(runner: Runner, scripts: Scripts, { name, tag }: AccountName): Promise<void> {
  const now = await readNamed(runner, tag);
  if (now && now.account.name !== name && now.renamed?.to !== name) await moveName(runner, scripts, tag, name, "");
}

/** An account, and its rename that is under way. */
interface NamedAccount {
  readonly account: Account;
  readonly renamed: { readonly from: string; readonly to: string } | undefined;
}

async function readNamed(runner: Runner, tag: AccountTag): Promise<NamedAccount | undefined> {
  const names = [...ACCOUNT_FIELDS, "rename"];
  const values = await runner.step((redis) => redis.hmget(accountKey(tag), names));
  const there = names.map((field, at) => [field, values[at]] as const).filter((entry) => entry[1] !== null);
  const fields = Object.fromEntries(there) as HashFields;
  const account = toAccount(tag, fields);
  if (account === undefined) return undefined;
  if (fields.rename === undefined) return { account, renamed: undefined };
  const [from = "", to = ""] = JSON.parse(fields.rename) as readonly string[];
  return { account, renamed: { from, to } };
}

export async function readAccount(runner: Runner, tag: AccountTag): Promise<Account | undefined> {
  return (await readNamed(runner, tag))?.account;
}

/** Reading an account by its tag repairs the index, if its name is missing there or a rename was not finished. */
export async function getAccount(runner: Runner, scripts: Scripts, tag: AccountTag): Promise<Account | undefined> {
  const read = await readNamed(runner, tag);
  if (read === undefined) return undefined;
  const { account, renamed } = read;
  const { name } = account;
  if (renamed?.to === name) await finishRename(runner, scripts, tag, renamed);
  const owner = await runner.step((redis) => redis.hget(NAME_INDEX, name));
  if (owner !== null) return account;
  await takeName(runner, scripts, "name-reserve", account);
  // It may have been renamed after it was read.
  await giveBack(runner, scripts, account);
  return account;
}

/**
 * While a rename is under way, the account's own name decides. Otherwise any name that leads to the account finds it.
 */
export async function findAccount(runner: Runner, name: string): Promise<Account | undefined> {
  const found = await findAccountName(runner, name);
  const read = found && (await readNamed(runner, found.tag));
  return read && read.renamed !== undefined && read.account.name !== name ? undefined : read?.account;
}

export async function findAccountName(runner: Runner, name: string): Promise<AccountName | undefined> {
  const tag = await runner.step((redis) => redis.hget(NAME_INDEX, name));
  return tag === null ? undefined : { name, tag: tag as AccountTag };
}

/** Names and tags alone: the accounts themselves are not read. */
export async function listAccountNames(
  runner: Runner,
  cursor: string | undefined,
  limit: number,
): Promise<Page<AccountName>> {
  const size = pageSize(limit, PAGE_MAX);
  const names = await runner.step((redis) => redis.namesAfter(NAMES_IN_ORDER, cursor, size + 1));
  const page = names.slice(0, size);
  const tags = page.length === 0 ? [] : await runner.step((redis) => redis.hmget(NAME_INDEX, page));
  return {
    items: page.flatMap((name, at) => (tags[at] ? [{ name, tag: tags[at] as AccountTag }] : [])),
    next: names.length > size ? page.at(-1) : undefined,
  };
}

/** The cursor is the last name of the page before. */
export async function listAccounts(runner: Runner, cursor: string | undefined, limit: number): Promise<Page<Account>> {
  const { items, next } = await listAccountNames(runner, cursor, limit);
  const found = await Promise.all(items.map(({ tag }) => readAccount(runner, tag)));
  return { items: found.filter((account) => account !== undefined), next };
}
