/** Accounts on Redis: plan, status, labels, keys, payments. */
import type { AccountTag, KeyHash } from "../../values/key.ts";
import { type NanoUsd, nanoUsd } from "../../values/money.ts";
import { TOTAL_MAX } from "../checks.ts";
import type { AccountBudgets, Store } from "../contract.ts";
import { effectiveKeyStatus } from "../decision.ts";
import { budgetField } from "../limits/budgets.ts";
import { BUDGET_SPANS } from "../limits/limits.ts";
import { accountId, creditAccounts, KEY_VALUES_MAX } from "../names.ts";
import { type NoticeWriter, termsText } from "../notices.ts";
import {
  type Account,
  type AccountChange,
  type Key,
  type KeyChange,
  type KeyRotation,
  type KeyUse,
  type KeyView,
  LABELS_MAX,
  type ListedKey,
  type NewKeyRecord,
} from "../records.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, expiriesKey, holdsKey, ledgerKey, paymentsKey } from "./keys.ts";
import { readAccount } from "./names.ts";
import { entriesOf, toBudgets, toEntitlement, toFormerKey, toKey, toKeyUse } from "./records.ts";
import type { Scripts } from "./scripts.ts";
import { wholeHash } from "./whole.ts";

/** For writes that may cause a notice. */
interface Noting {
  readonly runner: Runner;
  readonly scripts: Scripts;
  readonly notices: NoticeWriter | undefined;
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

/**
 * The reply of `lua/key-read.lua`: the account's limits and status, then the texts of the key's and of the account's
 * budgets.
 */
type KeyReadReply = [string, string, string, string, string, string[][], string, Account["status"], ...string[]];

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

/** @param replayed the revision of a replayed change. */
export async function changeAccount(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  { status, labels }: AccountChange,
  replayed?: number,
): Promise<Account | "too_many" | undefined> {
  const pairs = Object.entries(labels ?? {}).flat();
  const values = [`${replayed ?? ""}`, status ?? "", `${LABELS_MAX}`, labels ? "1" : "", ...pairs];
  const reply = await runner.script(scripts["account-change"], [accountKey(tag)], values);
  return reply === "too_many" ? reply : readAccount(runner, tag);
}

/**
 * From the first step on its keys are refused and no key can be made. Each key is also revoked individually, for
 * listings and for gateways of a version without closed accounts. If it is cut off, repeating the call continues it.
 */
export async function closeAccount(noting: Noting, tag: AccountTag, replayed?: number): Promise<Account | undefined> {
  const { runner, scripts } = noting;
  const reply = await runner.script(scripts["account-close"], [accountKey(tag)], [`${replayed ?? ""}`]);
  if (reply === "none") return undefined;
  for (const { id, status } of await listKeys(runner, tag)) {
    if (status !== "revoked") await changeKey(noting, tag, id, { status: "revoked" });
  }
  return readAccount(runner, tag);
}

export async function readKey(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  hash: KeyHash,
): Promise<KeyView | undefined> {
  const reply = await runner.script(scripts["key-read"], [accountKey(tag)], [hash]);
  if (reply === null) return undefined;
  const [now, stored, name, plan, balance, cards, limits, status, ...budgets] = reply as KeyReadReply;
  const key = toKey(tag, stored);
  return {
    key: { ...key, status: effectiveKeyStatus(key.status, status) },
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

/** @param replayed the revision of a replayed change. */
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

/** The number of keys whose uses one script records; Lua's stack takes some thousand values. */
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
  const { id, amount, kind, note, again } = payment;
  const size = amount < 0n ? -amount : amount;
  const reply = (await runner.script(
    scripts.credit,
    [accountKey(tag), paymentsKey(tag), ledgerKey(tag), holdsKey(tag), expiriesKey(tag)],
    [
      id,
      `${amount}`,
      `${size}`,
      kind,
      debit,
      credited,
      note,
      `${TOTAL_MAX}`,
      again ? "1" : "",
      termsText(notices?.terms()),
    ],
  )) as readonly [string, string?, string?];
  const [outcome, balance = "0", noticed] = reply;
  if (noticed === "1") notices?.noted(tag);
  if (outcome === "credited" || outcome === "duplicate") return { outcome, balance: nanoUsd(BigInt(balance)) };
  return { outcome: outcome as "mismatch" | "refused" | "closed" | "unknown_account" };
}
