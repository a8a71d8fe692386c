/** Accounts, keys and payments on Redis. */
import { randomBytes } from "node:crypto";
import type { AccountTag, KeyHash } from "../../values/key.ts";
import { type NanoUsd, nanoUsd } from "../../values/money.ts";
import { budgetField } from "../budgets.ts";
import { PAGE_MAX, pageSize, TOTAL_MAX } from "../checks.ts";
import type { AccountBudgets, Store } from "../contract.ts";
import { BUDGET_SPANS } from "../limits.ts";
import { accountId, creditAccounts, KEY_VALUES_MAX } from "../names.ts";
import { type NoticeWriter, termsText } from "../notices.ts";
import type {
  Account,
  AccountName,
  Key,
  KeyChange,
  KeyRotation,
  KeyUse,
  KeyView,
  ListedKey,
  NewKeyRecord,
  Page,
} from "../records.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, ledgerKey, NAME_INDEX, NAMES_IN_ORDER, paymentsKey } from "./keys.ts";
import {
  ACCOUNT_FIELDS,
  entriesOf,
  type HashFields,
  toAccount,
  toBudgets,
  toEntitlement,
  toFormerKey,
  toKey,
  toKeyUse,
} from "./records.ts";
import type { Scripts } from "./scripts.ts";
import { wholeHash } from "./whole.ts";

/** For writes of which there may be something to tell. */
interface Noting {
  readonly runner: Runner;
  readonly scripts: Scripts;
  readonly notices: NoticeWriter | undefined;
}

/**
 * The account first, then its name in the index, which decides between two of the same name; the loser's account goes
 * again. A crash between the two leaves an account that nobody knows of.
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
  const owner = await reserveName(runner, scripts, account.name, account.tag);
  if (made === "same") return "exists";
  if (owner !== account.tag) {
    await runner.script(scripts["account-drop"], [key], [nonce]);
    return "exists";
  }
  return (await readAccount(runner, account.tag)) ?? "exists";
}

async function reserveName(runner: Runner, scripts: Scripts, name: string, tag: AccountTag): Promise<string> {
  return (await runner.script(scripts["name-reserve"], [NAME_INDEX, NAMES_IN_ORDER], [name, tag])) as string;
}

async function readAccount(runner: Runner, tag: AccountTag): Promise<Account | undefined> {
  const values = await runner.step((redis) => redis.hmget(accountKey(tag), ACCOUNT_FIELDS));
  const there = ACCOUNT_FIELDS.map((field, at) => [field, values[at]] as const).filter((entry) => entry[1] !== null);
  return toAccount(tag, Object.fromEntries(there) as HashFields);
}

/** Reading an account by its tag repairs the index, should its name be missing there. */
export async function getAccount(runner: Runner, scripts: Scripts, tag: AccountTag): Promise<Account | undefined> {
  const account = await readAccount(runner, tag);
  if (account === undefined) return undefined;
  const owner = await runner.step((redis) => redis.hget(NAME_INDEX, account.name));
  if (owner === null) await reserveName(runner, scripts, account.name, tag);
  return account;
}

export async function findAccount(runner: Runner, name: string): Promise<Account | undefined> {
  const found = await findAccountName(runner, name);
  return found && readAccount(runner, found.tag);
}

export async function findAccountName(runner: Runner, name: string): Promise<AccountName | undefined> {
  const tag = await runner.step((redis) => redis.hget(NAME_INDEX, name));
  return tag === null ? undefined : { name, tag: tag as AccountTag };
}

/** Names and tags alone: what the accounts hold is not read. */
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
  const size = pageSize(limit, PAGE_MAX);
  const names = await runner.step((redis) => redis.namesAfter(NAMES_IN_ORDER, cursor, size + 1));
  const page = names.slice(0, size);
  const found = await Promise.all(page.map((name) => findAccount(runner, name)));
  return {
    items: found.filter((account) => account !== undefined),
    next: names.length > size ? page.at(-1) : undefined,
  };
}

export async function setPlan(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  plan: string,
  replayed?: number,
): Promise<Account | undefined> {
  const reply = await runner.script(scripts["account-plan"], [accountKey(tag)], [plan, `${replayed ?? ""}`]);
  return reply === "set" ? readAccount(runner, tag) : undefined;
}

export async function setAccountLimits(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  limits: string,
  replayed?: number,
): Promise<Account | undefined> {
  const reply = await runner.script(scripts["account-limits"], [accountKey(tag)], [limits, `${replayed ?? ""}`]);
  return reply === "set" ? readAccount(runner, tag) : undefined;
}

/** The budgets of an account that were ever used; undefined when there is no such account. */
export async function readAccountBudgets(runner: Runner, tag: AccountTag): Promise<AccountBudgets | undefined> {
  const fields = budgetFields(true, "");
  const [name, ...texts] = await runner.step((redis) =>
    redis.hmget(accountKey(tag), ["name", ...fields.map((field) => `b:${field}`)]),
  );
  if (!name) return undefined;
  return toBudgets(fields.map((field, i) => [field, texts[i] ?? undefined]));
}

/** As `lua/key-read.lua` gives it: the account's limits, then the texts of the key's and of the account's budgets. */
type KeyReadReply = [string, string, string, string, string, string[][], string, ...string[]];

const budgetFields = (ofAccount: boolean, keyId: string): string[] =>
  BUDGET_SPANS.map((span) => budgetField({ span, ofAccount }, keyId));

export async function setNotifyBelow(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  below: NanoUsd | undefined,
  replayed?: number,
): Promise<Account | undefined> {
  const values = [`${below ?? ""}`, `${replayed ?? ""}`];
  const reply = await runner.script(scripts["account-notify"], [accountKey(tag)], values);
  return reply === "set" ? readAccount(runner, tag) : undefined;
}

export async function readKey(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  hash: KeyHash,
): Promise<KeyView | undefined> {
  const reply = await runner.script(scripts["key-read"], [accountKey(tag)], [hash]);
  if (reply === null) return undefined;
  const [now, json, name, plan, balance, cards, limits, ...budgets] = reply as KeyReadReply;
  const key = toKey(tag, json);
  return {
    key,
    account: { id: accountId(tag), name, plan, balance: nanoUsd(BigInt(balance)), limits },
    entitlements: cards.map(toEntitlement),
    budgets: toBudgets(
      [...budgetFields(false, key.id), ...budgetFields(true, "")].map((field, i) => [field, budgets[i]]),
    ),
    storeTimeMs: Number(now),
  };
}

export async function createKey(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  { id, hash, group, name = "", expiresAtMs }: NewKeyRecord,
): Promise<Key | undefined> {
  const values = [id, hash, group, name, `${expiresAtMs ?? ""}`];
  return keyOfReply(tag, await runner.script(scripts["key-create"], [accountKey(tag)], values));
}

export async function listKeys(runner: Runner, tag: AccountTag): Promise<ListedKey[]> {
  const fields = await wholeHash(runner, accountKey(tag));
  return entriesOf(fields, "k:")
    .filter(([, json]) => !toFormerKey(json))
    .map(([, json]) => toKey(tag, json))
    .map((key) => {
      const used = fields[`ku:${key.id}`];
      const budgets = toBudgets(budgetFields(false, key.id).map((field) => [field, fields[`b:${field}`]]));
      return { ...key, budgets, ...(used !== undefined && { lastUse: toKeyUse(key.id, used) }) };
    })
    .sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1));
}

/** @param replayed the revision of a change that is made again. */
export async function changeKey(
  { runner, scripts, notices }: Noting,
  tag: AccountTag,
  keyId: string,
  { group, name, status, expiresAtMs, limits, caps }: Omit<KeyChange, "status"> & { readonly status?: Key["status"] },
  replayed?: number,
): Promise<Key | undefined> {
  const expires = expiresAtMs === "never" ? "" : expiresAtMs?.toString();
  const changed = Object.entries({ group, name, status, expires, limits, caps }).flatMap(([field, text]) =>
    text === undefined ? [] : [field, text],
  );
  const values = [keyId, `${replayed ?? ""}`, ...changed, termsText(notices?.terms())];
  const reply = await runner.script(scripts["key-change"], [accountKey(tag)], values);
  if (reply === null) return undefined;
  const [key, noticed] = reply as readonly [string, string];
  if (noticed === "1") notices?.noted(tag);
  return toKey(tag, key);
}

/** Keys whose uses one script notes; Lua's stack takes some thousand values. */
const USES_PER_STEP = 500;

export async function noteKeyUses(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  uses: readonly KeyUse[],
): Promise<void> {
  for (let at = 0; at < uses.length; at += USES_PER_STEP) {
    const some = uses.slice(at, at + USES_PER_STEP);
    const values = some.flatMap(({ keyId, atMs, from, by }) => [keyId, `${atMs}`, from, by]);
    await runner.script(scripts["key-uses"], [accountKey(tag)], values);
  }
}

export async function rotateKey(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  keyId: string,
  rotation: KeyRotation,
  replayed?: number,
): Promise<Key | "too_many" | undefined> {
  const [lasts, ends] = "untilMs" in rotation ? ["", rotation.untilMs] : [rotation.overlapMs, ""];
  const values = [keyId, rotation.hash, `${lasts}`, `${ends}`, `${replayed ?? ""}`, `${KEY_VALUES_MAX}`];
  const reply = await runner.script(scripts["key-rotate"], [accountKey(tag)], values);
  return reply === "too_many" ? reply : keyOfReply(tag, reply);
}

function keyOfReply(tag: AccountTag, reply: unknown): Key | undefined {
  return reply === null ? undefined : toKey(tag, reply as string);
}

export async function credit(
  { runner, scripts, notices }: Noting,
  tag: AccountTag,
  payment: Parameters<Store["credit"]>[1],
): ReturnType<Store["credit"]> {
  const { debit, credit: credited } = creditAccounts(tag, payment);
  const { id, amount, kind, note } = payment;
  const size = amount < 0n ? -amount : amount;
  const reply = (await runner.script(
    scripts.credit,
    [accountKey(tag), paymentsKey(tag), ledgerKey(tag)],
    [id, `${amount}`, `${size}`, kind, debit, credited, note, `${TOTAL_MAX}`, termsText(notices?.terms())],
  )) as readonly [string, string?, string?];
  const [outcome, balance = "0", noticed] = reply;
  if (noticed === "1") notices?.noted(tag);
  if (outcome === "credited" || outcome === "duplicate") return { outcome, balance: nanoUsd(BigInt(balance)) };
  return { outcome: outcome as "mismatch" | "refused" | "unknown_account" };
}
