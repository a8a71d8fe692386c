/**
 * The whole state of one account on Redis, in the canonical form of the contract. It is not atomic, and it goes through
 * all keys of the database for marks and keys that no list contains: for tests. An audit reads figures (`figures.ts`).
 */
import type { KeyState } from "../../values/idempotency.ts";
import type { AccountTag } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import { LEDGER_PAGE_MAX } from "../checks.ts";
import { type HoldRecord, holdAmount, holdEntitlement, holdExpiresAtMs, holdScope } from "../hold-record.ts";
import { noticeOfTexts } from "../notices.ts";
import type { AccountState, DaySum, Entitlement, LedgerLine, UpstreamDaySum } from "../records.ts";
import { type DaySums, daySumsAsState } from "../sums/day-sums.ts";
import { readLedger } from "./archive.ts";
import type { ScanPlace } from "./connection/connect.ts";
import type { Runner } from "./connection/runner.ts";
import { daySumsOf, upstreamDaySumsOf } from "./days.ts";
import {
  accountKey,
  accountPattern,
  dayCountsKey,
  dayKey,
  holdsKey,
  idempotencyKey,
  paymentsKey,
  settledKey,
} from "./keys.ts";
import { entriesOf, type HashFields, toAccount, toBudgets, toEntitlement, toFormerKey, toKey } from "./records.ts";
import { wholeHash } from "./whole.ts";

export async function inspect(runner: Runner, tag: AccountTag): Promise<AccountState | undefined> {
  const fields = await wholeHash(runner, accountKey(tag));
  const account = toAccount(tag, fields);
  if (account === undefined) return undefined;
  const [holds, payments, keys, ledger] = await Promise.all([
    wholeHash(runner, holdsKey(tag)),
    wholeHash(runner, paymentsKey(tag)),
    everyKey(runner, accountPattern(tag)),
    wholeLedger(runner, tag),
  ]);
  return {
    account,
    seq: Number(fields.seq),
    inFlight: Number(fields.conc),
    inFlightByScope: Object.fromEntries(entriesOf(fields, "c:").map(([scope, count]) => [scope, Number(count)])),
    inFlightByKey: Object.fromEntries(entriesOf(fields, "kc:").map(([key, count]) => [key, Number(count)])),
    budgets: Object.fromEntries(toBudgets(entriesOf(fields, "b:"))),
    keys: entriesOf(fields, "k:")
      .filter(([, json]) => !toFormerKey(json))
      .map(([, json]) => toKey(tag, json))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
    formerKeys: entriesOf(fields, "k:").flatMap(([hash, json]) => {
      const former = toFormerKey(json);
      return former ? [{ hash, ...former }] : [];
    }),
    entitlements: entriesOf(fields, "e:").map(([id, json]) => entitlementOf(fields, id, json)),
    holds: entriesOf(holds, "").map(([requestId, json]) => holdOf(requestId, JSON.parse(json) as HoldRecord)),
    buckets: Object.fromEntries(entriesOf(fields, "tb:").map(([name, stored]) => [name, bucketOf(stored)])),
    settled: suffixes(keys, settledKey(tag, "")),
    ledger,
    payments: Object.keys(payments).sort(),
    notices: {
      taken: Number(fields.ntaken ?? 0),
      last: Number(fields.nseq ?? 0),
      waiting: entriesOf(fields, "n:")
        .map(([, json]) => noticeOfTexts(JSON.parse(json) as string[]))
        .sort((a, b) => a.seq - b.seq),
      marks: Object.fromEntries(entriesOf(fields, "nm:").map(([mark, latest]) => [mark, Number(latest)])),
    },
    idempotency: await idempotencyOf(runner, tag, suffixes(keys, idempotencyKey(tag, ""))),
    ...(await daysOf(runner, tag, suffixes(keys, dayKey(tag, "")))),
  };
}

async function everyKey(runner: Runner, pattern: string): Promise<string[]> {
  const keys: string[] = [];
  let place: ScanPlace | undefined;
  do {
    const from = place;
    const part = await runner.step((redis) => redis.scan(pattern, from));
    keys.push(...part.keys);
    place = part.next;
  } while (place !== undefined);
  return keys;
}

async function wholeLedger(runner: Runner, tag: AccountTag): Promise<LedgerLine[]> {
  const lines: LedgerLine[] = [];
  for (;;) {
    const page = await readLedger(runner, tag, lines.at(-1)?.seq ?? 0, LEDGER_PAGE_MAX);
    lines.push(...page);
    if (page.length < LEDGER_PAGE_MAX) return lines;
  }
}

async function daysOf(runner: Runner, tag: AccountTag, found: readonly string[]): Promise<DaySums> {
  const sums: DaySum[] = [];
  const upstreams: UpstreamDaySum[] = [];
  for (const day of found) {
    const counted = await wholeHash(runner, dayCountsKey(tag, day));
    sums.push(...daySumsOf(day, await wholeHash(runner, dayKey(tag, day)), counted));
    upstreams.push(...upstreamDaySumsOf(day, counted));
  }
  return daySumsAsState(sums, upstreams);
}

async function idempotencyOf(
  runner: Runner,
  tag: AccountTag,
  hashes: readonly string[],
): Promise<AccountState["idempotency"]> {
  const found = await Promise.all(
    hashes.map(async (key) => ({ key, text: await runner.step((redis) => redis.get(idempotencyKey(tag, key))) })),
  );
  return found.flatMap(({ key, text }) => {
    if (text === null) return [];
    const [requestId, fingerprint, state, untilMs] = JSON.parse(text) as [string, string, KeyState, string];
    return [{ key, requestId, fingerprint, state, untilMs: Number(untilMs) }];
  });
}

function entitlementOf(fields: HashFields, id: string, json: string): Entitlement {
  const fixed = JSON.parse(json) as string[];
  const sums = [fields[`ep:${id}`] ?? "0", fields[`eh:${id}`] ?? "0"];
  return toEntitlement([...fixed.slice(0, 6), ...sums, fixed[6] ?? ""]);
}

function holdOf(requestId: string, record: HoldRecord): AccountState["holds"][number] {
  return {
    requestId,
    amount: nanoUsd(holdAmount(record)),
    expiresAtMs: holdExpiresAtMs(record),
    scope: holdScope(record),
    entitlement: holdEntitlement(record),
  };
}

function bucketOf(stored: string): { debt: number; atMs: number } {
  const [debt, at] = stored.split(":");
  return { debt: Number(debt), atMs: Number(at) };
}

function suffixes(keys: readonly string[], prefix: string): string[] {
  const found = keys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  return [...new Set(found)].sort();
}
