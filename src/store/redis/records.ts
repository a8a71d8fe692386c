/** Converts records in Redis to values of the contract. */
import type { AccountTag } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import { StoreError } from "../contract.ts";
import type { BudgetCounts } from "../limits/budgets.ts";
import { accountId } from "../names.ts";
import type { Account, CardFacts, Code, CodeBatch, Entitlement, Key, KeyUse, LedgerLine } from "../records.ts";

export type HashFields = Readonly<Record<string, string>>;

/** @param flat fields and values alternating, as Redis returns them. */
export function fieldsOf(flat: readonly string[] = []): HashFields {
  const fields: Record<string, string> = {};
  for (let i = 0; i + 1 < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string;
  return fields;
}

/** Fields of an account's hash that `toAccount` reads. The rest, its keys and cards, may be long. */
export const ACCOUNT_FIELDS = [
  ...["name", "plan", "plan_rev", "status", "labels", "rev", "labels_rev", "name_rev"],
  ...["bal", "held", "spent", "topped", "seq", "created", "lim", "lim_rev", "nb", "nb_rev"],
] as const;

/**
 * An account's hash; undefined when there is no such account.
 * @throws StoreError when a field that must hold an amount holds something else.
 */
export function toAccount(tag: AccountTag, fields: HashFields): Account | undefined {
  if (fields.name === undefined) return undefined;
  const broken = (["bal", "held", "spent", "topped"] as const).find(
    (name) => !/^-?[0-9]{1,19}$/.test(fields[name] ?? "0"),
  );
  if (broken) {
    const message = `the record ${broken} of ${accountId(tag)} is no amount`;
    throw new StoreError("unavailable", message, { outcome: "refused" });
  }
  return {
    id: accountId(tag),
    tag,
    name: fields.name,
    plan: fields.plan ?? "",
    planRevision: Number(fields.plan_rev ?? 1),
    limits: fields.lim ?? "",
    limitsRevision: Number(fields.lim_rev ?? 0),
    status: (fields.status ?? "normal") as Account["status"],
    labels: toLabels(fields.labels),
    revision: Number(fields.rev ?? 1),
    labelsRevision: Number(fields.labels_rev ?? 1),
    nameRevision: Number(fields.name_rev ?? 1),
    balance: nanoUsd(BigInt(fields.bal ?? 0)),
    held: nanoUsd(BigInt(fields.held ?? 0)),
    spent: nanoUsd(BigInt(fields.spent ?? 0)),
    topped: BigInt(fields.topped ?? 0),
    lines: Number(fields.seq ?? 0),
    notifyBelow: fields.nb ? nanoUsd(BigInt(fields.nb)) : undefined,
    notifyRevision: Number(fields.nb_rev ?? 0),
    createdAtMs: Number(fields.created),
  };
}

/** Labels from a JSON object of texts by name, as in the embedded store. Unreadable labels count as none. */
function toLabels(json = "{}"): Account["labels"] {
  try {
    const entries = Object.entries(JSON.parse(json) as object).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries.filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}

/** A key record: a JSON list of texts (`lua/key.lua`). */
export function toKey(tag: AccountTag, json: string): Key {
  const texts = JSON.parse(json) as readonly string[];
  const [id = "", group = "", status, created, revision, name = "", expires = "", suspended, , former = ""] = texts;
  const [rotated, limits = "", caps = ""] = texts.slice(10);
  return {
    id,
    tag,
    group,
    name,
    status: status !== "revoked" ? "normal" : suspended === "1" ? "suspended" : "revoked",
    expiresAtMs: expires === "" ? undefined : Number(expires),
    previousUntilMs: former === "" ? undefined : Number(former.split(" ").at(-1)),
    createdAtMs: Number(created),
    revision: Number(revision),
    rotation: Number(rotated ?? 0),
    limits,
    caps,
  };
}

/**
 * Budgets by field, from their values in the account's hash (`lua/budgets.lua`). Those without a value are left out.
 */
export function toBudgets(
  texts: readonly (readonly [field: string, text: string | undefined])[],
): Map<string, BudgetCounts> {
  return new Map(
    texts.flatMap(([field, text]) => {
      if (!text) return [];
      const figures = text.split(" ");
      const sums = ([period, spent = "0", held = "0"]: readonly string[]) => {
        return { period: Number(period), spent: BigInt(spent), held: BigInt(held) };
      };
      return [[field, { now: sums(figures.slice(0, 3)), before: sums(figures.slice(3)) }] as const];
    }),
  );
}

/** A former value of a key: its end, and the id of its key; undefined for a key (`lua/key.lua`). */
export function toFormerKey(json: string): { readonly id: string; readonly untilMs: number } | undefined {
  const { 0: id = "", 8: ends = "" } = JSON.parse(json) as readonly string[];
  return ends === "" ? undefined : { id, untilMs: Number(ends) };
}

/** The last use of a key (`lua/key-uses.lua`). */
export function toKeyUse(keyId: string, json: string): KeyUse {
  const [at, from = "", by = ""] = JSON.parse(json) as readonly string[];
  return { keyId, atMs: Number(at), from, by };
}

/** A card as the scripts return it (`lua/card-texts.lua`). */
export function toEntitlement(texts: readonly string[]): Entitlement {
  const [id = "", plan = "", group = "", from, until, quota = "", spent = "0", held = "0", card = ""] = texts;
  return {
    id,
    card: card === "" ? undefined : card,
    plan,
    group,
    fromMs: Number(from),
    untilMs: Number(until),
    quota: quota === "" ? undefined : nanoUsd(BigInt(quota)),
    spent: nanoUsd(BigInt(spent)),
    held: nanoUsd(BigInt(held)),
  };
}

/** A code as the scripts return it (`code_texts` in `lua/codes.lua`). */
export function toCode(texts: readonly string[]): Code {
  const [id, card, plan, group, lasts, starts, quota, state, created, tag, claimed, expires, batch] = texts as string[];
  return toCodeOfFields({
    ...{ id, card, plan, group, lasts, starts, quota, state, created, tag, claimed, expires, batch },
  } as HashFields) as Code;
}

/** A code's hash; undefined when there is no such code. */
export function toCodeOfFields(fields: HashFields): Code | undefined {
  const { id, state, tag = "", claimed = "", batch = "" } = fields;
  if (id === undefined) return undefined;
  return {
    id,
    ...worthOf(fields),
    batch: batch === "" ? undefined : batch,
    state: state as Code["state"],
    tag: tag === "" ? undefined : (tag as AccountTag),
    claimedAtMs: claimed === "" ? undefined : Number(claimed),
  };
}

/** A batch's hash; undefined when there is no such batch. */
export function toBatch(fields: HashFields): CodeBatch | undefined {
  const { id, label = "", count } = fields;
  return id === undefined ? undefined : { id, label, count: Number(count), ...worthOf(fields) };
}

/** What a code and a batch have in common. */
function worthOf(fields: HashFields): CardFacts & Pick<Code, "expiresAtMs" | "createdAtMs"> {
  const { card = "", plan = "", group = "", lasts, starts, quota = "", expires = "", created } = fields;
  return {
    card,
    plan,
    group,
    lastsMs: Number(lasts),
    starts: starts as Code["starts"],
    quota: quota === "" ? undefined : nanoUsd(BigInt(quota)),
    expiresAtMs: expires === "" ? undefined : Number(expires),
    createdAtMs: Number(created),
  };
}

/**
 * All entries of an account's hash whose field begins with `prefix`, by field: the rest of the field, and the value.
 */
export function entriesOf(fields: HashFields, prefix: string): [rest: string, value: string][] {
  return Object.entries(fields)
    .filter(([field]) => field.startsWith(prefix))
    .map(([field, value]): [string, string] => [field.slice(prefix.length), value])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A line of the stream. A line whose figures cannot be read is marked as unreadable. */
export function toLedgerLine([id, flat]: readonly [string, readonly string[]]): LedgerLine {
  const fields = fieldsOf(flat);
  const seq = Number.parseInt(id, 10);
  const isWhole = [fields.at, fields.amount, fields.bal].every((text) => /^-?[0-9]{1,19}$/.test(text ?? ""));
  if (!isWhole || id !== `${seq}-0`) return unreadableLine(seq);
  return {
    seq,
    atMs: Number(fields.at),
    kind: fields.kind as LedgerLine["kind"],
    debit: fields.debit ?? "",
    credit: fields.credit ?? "",
    amount: nanoUsd(BigInt(fields.amount ?? 0)),
    balance: BigInt(fields.bal ?? 0),
    reference: fields.ref ?? "",
    group: fields.group ?? "",
    model: fields.model ?? "",
    key: fields.key ?? "",
    memo: fields.memo ?? "",
  };
}

/** Replaces an entry of the ledger that is not a line. */
export function unreadableLine(seq: number): LedgerLine {
  return {
    ...{ seq, atMs: 0, kind: "unreadable", debit: "", credit: "", amount: nanoUsd(0n), balance: 0n },
    ...{ reference: "", group: "", model: "", key: "", memo: "" },
  };
}
