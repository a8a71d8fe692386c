/** What accounts on Redis are and have: plan, status, labels, keys, payments. */
import type { AccountTag, KeyHash } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import { TOTAL_MAX } from "../checks.ts";
import type { Store } from "../contract.ts";
import { standingOfKey } from "../decision.ts";
import { accountId, creditAccounts, KEY_VALUES_MAX } from "../names.ts";
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
import { accountKey, ledgerKey, paymentsKey } from "./keys.ts";
import { readAccount } from "./names.ts";
import { entriesOf, toEntitlement, toFormerKey, toKey, toKeyUse } from "./records.ts";
import type { Scripts } from "./scripts.ts";
import { wholeHash } from "./whole.ts";

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

/** @param replayed the revision of a change that is made again. */
export async function changeAccount(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  { status, labels }: AccountChange,
  replayed?: number,
): Promise<Account | "too_many" | undefined> {
  const said = Object.entries(labels ?? {}).flat();
  const values = [`${replayed ?? ""}`, status ?? "", `${LABELS_MAX}`, labels ? "1" : "", ...said];
  const reply = await runner.script(scripts["account-change"], [accountKey(tag)], values);
  return reply === "too_many" ? reply : readAccount(runner, tag);
}

/**
 * From the first step on its keys are refused, and none is made. That each is revoked by itself is for lists, and for replicas
 * of a version that knows of no closed account; where it is cut off the same call goes on.
 */
export async function closeAccount(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  replayed?: number,
): Promise<Account | undefined> {
  const reply = await runner.script(scripts["account-close"], [accountKey(tag)], [`${replayed ?? ""}`]);
  if (reply === "none") return undefined;
  for (const { id, status } of await listKeys(runner, tag)) {
    if (status !== "revoked") await changeKey(runner, scripts, tag, id, { status: "revoked" });
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
  const [now, stored, name, plan, balance, cards, status] = reply as KeyReply;
  const key = toKey(tag, stored);
  return {
    key: { ...key, status: standingOfKey(key.status, status) },
    account: { id: accountId(tag), name, plan, balance: nanoUsd(BigInt(balance)) },
    entitlements: cards.map(toEntitlement),
    storeTimeMs: Number(now),
  };
}

type KeyReply = [string, string, string, string, string, string[][], Account["status"]];

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
      return used === undefined ? key : { ...key, lastUse: toKeyUse(key.id, used) };
    })
    .sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1));
}

/** @param replayed the revision of a change that is made again. */
export async function changeKey(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  keyId: string,
  { group, name, status, expiresAtMs }: Omit<KeyChange, "status"> & { readonly status?: Key["status"] },
  replayed?: number,
): Promise<Key | undefined> {
  const expires = expiresAtMs === "never" ? "" : expiresAtMs?.toString();
  const changed = Object.entries({ group, name, status, expires }).flatMap(([field, text]) =>
    text === undefined ? [] : [field, text],
  );
  const values = [keyId, `${replayed ?? ""}`, ...changed];
  return keyOfReply(tag, await runner.script(scripts["key-change"], [accountKey(tag)], values));
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
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  payment: Parameters<Store["credit"]>[1],
): ReturnType<Store["credit"]> {
  const { debit, credit: credited } = creditAccounts(tag, payment);
  const { id, amount, kind, note, again } = payment;
  const size = amount < 0n ? -amount : amount;
  const reply = (await runner.script(
    scripts.credit,
    [accountKey(tag), paymentsKey(tag), ledgerKey(tag)],
    [id, `${amount}`, `${size}`, kind, debit, credited, note, `${TOTAL_MAX}`, again ? "1" : ""],
  )) as readonly [string, string?];
  const [outcome, balance = "0"] = reply;
  if (outcome === "credited" || outcome === "duplicate") return { outcome, balance: nanoUsd(BigInt(balance)) };
  return { outcome: outcome as "mismatch" | "refused" | "closed" | "unknown_account" };
}
