/** Figures of an account on Redis at one instant, and the names of what it has, in pages. */

import type { AccountTag } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import type { Bucket, LimitUsage } from "../buckets.ts";
import type {
  AccountFigures,
  CardFigures,
  FiguresAsk,
  HoldFigures,
  KeyFigures,
  KeyName,
  RecordNames,
} from "../figures.ts";
import { type HoldRecord, holdAmount, holdEntitlement, holdExpiresAtMs, holdScope } from "../hold-record.ts";
import { countField } from "../names.ts";
import { ACCOUNT_CONCURRENCY_MAX } from "../settlement.ts";
import { addTotals, MONEY_KINDS, NO_USAGE_TOTAL, type UsageTotal } from "../sums/day-sums.ts";
import { COUNT_KINDS, countsFrom } from "../sums/token-sums.ts";
import type { Runner } from "./connection/runner.ts";
import {
  accountKey,
  dayCountsKey,
  dayKey,
  expiriesKey,
  holdsKey,
  ledgerKey,
  openingKey,
  paymentsKey,
  settledKey,
} from "./keys.ts";
import { ACCOUNT_FIELDS, fieldsOf, type HashFields, toAccount, toEntitlement } from "./records.ts";
import type { Scripts } from "./scripts.ts";

/** Fields of the account's hash that every portion has. */
const OWN_FIELDS = [...ACCOUNT_FIELDS, "conc", "es", "todo"] as const;
/** Those of them that are whole numbers. */
const NUMBERS = ["bal", "held", "spent", "topped", "created", "seq", "conc"] as const;
/** What is stored for a field besides the sum of the day. For an upstream's field, that sum is among these. */
const KINDS = [...COUNT_KINDS, ...MONEY_KINDS, "charged"] as const;
/** The most holds that can be read: twice as many as an account can have. */
const HOLDS_MAX = 2 * ACCOUNT_CONCURRENCY_MAX;
/** Fields that one step through an account's hash examines. */
const SCAN_COUNT = 500;

type FiguresReply = readonly [
  now: string,
  lastLine: string,
  fields: readonly (string | null)[],
  payments: readonly (string | null)[],
  paymentCount: string,
  marks: readonly (string | null)[],
  days: readonly [sums: (string | null)[], counts: (string | null)[]][],
  holds: readonly string[],
  expiries: readonly string[],
  holdCount: string,
];

export async function readFigures(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  ask: FiguresAsk,
): Promise<AccountFigures | undefined> {
  const { cards = [], requests = [], payments = [], scopes = [], keys = [], spent, holds = false } = ask;
  const { days = [], fields: summed = [] } = spent ?? {};
  const names = [
    ...OWN_FIELDS,
    ...cards.flatMap((id) => [`e:${id}`, `ep:${id}`, `eh:${id}`]),
    ...scopes.map((scope) => `c:${scope}`),
    ...keys.flatMap(({ id, hash }) => [`ki:${id}`, `k:${hash}`]),
  ];
  const counted = summed.flatMap((field) => KINDS.map((kind) => countField(kind, field)));
  const reply = (await runner.script(
    scripts["figures-read"],
    [
      ...[accountKey(tag), holdsKey(tag), expiriesKey(tag), paymentsKey(tag), ledgerKey(tag), openingKey(tag)],
      ...requests.map((id) => settledKey(tag, id)),
      ...days.flatMap((day) => [dayKey(tag, day), dayCountsKey(tag, day)]),
    ],
    [
      ...[`${requests.length}`, `${days.length}`, holds ? `${HOLDS_MAX}` : "0"],
      ...[names, payments, summed, counted].map((list) => JSON.stringify(list)),
    ],
  )) as FiguresReply | null;
  if (reply === null) return undefined;
  const [now, lastLine, values, paid, paymentCount, marks, byDay, flatHolds, flatExpiries, holdCount] = reply;
  const read = new Reading(Object.fromEntries(names.map((name, at) => [name, values[at] ?? undefined])));
  const listed = read.list("es");
  for (const name of NUMBERS) read.amount(name);
  return {
    account: toAccount(tag, read.wholesome(NUMBERS)) ?? nameless(tag, read),
    seq: Number(read.amount("seq")),
    lastLine: Number(lastLine),
    inFlight: Number(read.amount("conc")),
    storeTimeMs: Number(now),
    unfinished: read.text("todo") !== undefined,
    cards: new Map(cards.map((id) => [id, cardOf(read, id, listed)])),
    marks: new Map(requests.map((id, at) => [id, markOf(read, id, marks[at] ?? undefined)])),
    payments: new Map(payments.map((id, at) => [id, read.value(`pay ${id}`, paid[at] ?? undefined)])),
    paymentCount: ask.paymentCount ? Number(paymentCount) : undefined,
    scopes: new Map(scopes.map((scope) => [scope, Number(read.amount(`c:${scope}`))])),
    keys: keys.map((name) => keyOf(read, name)),
    spent: new Map(summed.map((field, at) => [field, spentOf(read, field, at, byDay)])),
    holds: holds ? holdsOf(read, flatHolds, Number(holdCount)) : undefined,
    expiries: new Map(Object.entries(fieldsOf(flatExpiries)).map(([id, at]) => [id, Number(at)])),
    unreadable: read.unreadable,
  };
}

/** An account whose name was removed from its hash still exists. */
function nameless(tag: AccountTag, read: Reading): AccountFigures["account"] {
  read.unreadable.push("name");
  return toAccount(tag, { ...read.wholesome(NUMBERS), name: "" }) as AccountFigures["account"];
}

/** Converts texts of the store to figures. What cannot be read counts as 0, and its name is recorded. */
class Reading {
  readonly unreadable: string[] = [];
  readonly #fields: Readonly<Record<string, string | undefined>>;

  constructor(fields: Readonly<Record<string, string | undefined>>) {
    this.#fields = fields;
  }

  text(name: string): string | undefined {
    return this.#fields[name];
  }

  amount(name: string): bigint {
    return this.value(name, this.#fields[name]) ?? 0n;
  }

  value(name: string, text: string | undefined): bigint | undefined {
    if (text === undefined) return undefined;
    if (/^-?(0|[1-9][0-9]{0,18})$/.test(text)) return BigInt(text);
    this.note(name);
    return 0n;
  }

  /** A JSON list of texts; empty without one. */
  list(name: string): readonly string[] {
    return this.texts(name, this.#fields[name]) ?? [];
  }

  texts(name: string, json: string | undefined): readonly string[] | undefined {
    if (json === undefined) return undefined;
    try {
      const list: unknown = JSON.parse(json);
      // cjson writes an empty list as an empty object.
      if (Array.isArray(list) && list.every((one) => typeof one === "string")) return list;
      if (json === "{}") return [];
    } catch {}
    this.note(name);
    return undefined;
  }

  note(name: string): void {
    if (!this.unreadable.includes(name)) this.unreadable.push(name);
  }

  /** All fields; those in `numbers` that are not numbers become 0. */
  wholesome(numbers: readonly string[]): HashFields {
    const there = Object.entries(this.#fields).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const read = numbers.flatMap((name) => (this.#fields[name] === undefined ? [] : [[name, `${this.amount(name)}`]]));
    return { ...Object.fromEntries(there), ...Object.fromEntries(read) };
  }
}

function cardOf(read: Reading, id: string, listed: readonly string[]): CardFigures | undefined {
  const texts = read.texts(`e:${id}`, read.text(`e:${id}`));
  if (texts === undefined) return undefined;
  const [name = "", plan = "", group = "", from = "", until = "", quota = "", kind = ""] = texts;
  for (const number of [from, until, quota || "0"]) read.value(`e:${id}`, number);
  const sums = [`${read.amount(`ep:${id}`)}`, `${read.amount(`eh:${id}`)}`];
  const amount = quota === "" ? "" : `${read.value(`e:${id}`, quota)}`;
  return { ...toEntitlement([name, plan, group, from, until, amount, ...sums, kind]), listed: listed.includes(id) };
}

/** A mark is a JSON list: the amount, and the hold's record. */
function markOf(read: Reading, id: string, json: string | undefined): bigint | undefined {
  const texts = read.texts(`mark ${id}`, json);
  return texts && read.value(`mark ${id}`, texts[0] ?? "");
}

function keyOf(read: Reading, { id, hash }: KeyName): KeyFigures {
  const [idOfHash] = read.texts(`k:${hash}`, read.text(`k:${hash}`)) ?? [];
  return { id, hash, hashOfId: read.text(`ki:${id}`), idOfHash };
}

function spentOf(read: Reading, field: string, at: number, days: FiguresReply[6]): UsageTotal {
  return days.reduce<UsageTotal>((total, [sums, counts]) => {
    const figure = (text: string | null | undefined) => read.value(`day ${field}`, text ?? undefined) ?? 0n;
    const of = (kind: (typeof KINDS)[number]) => figure(counts[at * KINDS.length + KINDS.indexOf(kind)]);
    return addTotals(total, {
      amount: figure(sums[at]) + of("charged"),
      counts: countsFrom((kind) => Number(of(kind))),
      cost: of("cost"),
      absorbed: of("absorbed"),
    });
  }, NO_USAGE_TOTAL);
}

function holdsOf(read: Reading, flat: readonly string[], count: number): HoldFigures[] | undefined {
  if (count > HOLDS_MAX) {
    read.note(`holds (${count} of them)`);
    return undefined;
  }
  return Object.entries(fieldsOf(flat)).flatMap(([requestId, json]) => {
    const record = read.texts(`hold ${requestId}`, json) as HoldRecord | undefined;
    if (record === undefined || read.value(`hold ${requestId}`, record[0] ?? "") === undefined) return [];
    const isWhole = /^[0-9]+$/.test(record[0] ?? "");
    return [
      {
        requestId,
        amount: isWhole ? holdAmount(record) : nanoUsd(0n),
        expiresAtMs: holdExpiresAtMs(record),
        scope: holdScope(record),
        entitlement: holdEntitlement(record),
      },
    ];
  });
}

/**
 * A page of an account's hash, with bounded work. Each field that exists from the first page to the last is on one of
 * them.
 */
export async function listRecords(runner: Runner, tag: AccountTag, cursor = "0"): Promise<RecordNames> {
  const [next, flat] = await runner.step((redis) => redis.hscan(accountKey(tag), cursor, SCAN_COUNT));
  const names = Object.entries(fieldsOf(flat));
  const behind = (prefix: string) =>
    names
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), value] as const);
  return {
    // If one of a card's or key's fields is missing, the others still name it.
    cards: [...new Set(["e:", "ep:", "eh:"].flatMap((prefix) => behind(prefix).map(([id]) => id)))],
    scopes: behind("c:").map(([scope]) => scope),
    keys: [
      ...behind("ki:").map(([id, hash]) => ({ id, hash })),
      ...behind("k:").flatMap(([hash, json]) => {
        const { 0: id = "", 8: ends = "" } = new Reading({}).texts("", json) ?? [];
        // A former value of a key leads to the key by its id, but that id leads to another value.
        return ends === "" ? [{ id, hash }] : [];
      }),
    ],
    next: next === "0" ? undefined : next,
  };
}

/* Reading limits on Redis. */

export async function readLimits(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  scope: string,
): Promise<LimitUsage | undefined> {
  const keys = [accountKey(tag), holdsKey(tag), expiriesKey(tag)];
  const reply = await runner.script(scripts["limits-read"], keys, [scope]);
  if (reply === null) return undefined;
  const [now = "", requests = "", tokens = "", ofScope, ofAccount, overrun = ""] = reply as readonly string[];
  return {
    requests: toBucket(requests),
    tokens: toBucket(tokens),
    overrun: toBucket(overrun),
    inFlight: Number(ofScope),
    inFlightOfAccount: Number(ofAccount),
    storeTimeMs: Number(now),
  };
}

/** A bucket is stored as `<debt>:<at>` (lua/buckets.lua). */
function toBucket(stored: string): Bucket | undefined {
  const [debt, at] = stored.split(":");
  return at === undefined ? undefined : { debt: Number(debt), atMs: Number(at) };
}
