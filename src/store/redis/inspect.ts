/** The whole state of one account on Redis, in the canonical form of the contract. Not atomic: for tests and audits. */
import type { KeyState } from "../../values/idempotency.ts";
import type { AccountTag } from "../../values/key.ts";
import { type NanoUsd, nanoUsd } from "../../values/money.ts";
import { LEDGER_PAGE_MAX } from "../checks.ts";
import { daySumOf, daysOfSpan } from "../day-sums.ts";
import { type HoldRecord, holdAmount, holdEntitlement, holdExpiresAtMs, holdScope } from "../hold-record.ts";
import { countField, dayField } from "../names.ts";
import type { AccountState, DaySum, Entitlement, LedgerLine } from "../records.ts";
import { countsFrom, type UsageCounts } from "../token-sums.ts";
import { readLedger } from "./archive.ts";
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
import { entriesOf, type Fields, toAccount, toEntitlement, toKey } from "./records.ts";
import type { Runner } from "./runner.ts";
import type { Scripts } from "./scripts.ts";

export async function inspect(runner: Runner, scripts: Scripts, tag: AccountTag): Promise<AccountState | undefined> {
  const fields = await runner.step((redis) => redis.hgetall(accountKey(tag)));
  const account = toAccount(tag, fields);
  if (account === undefined) return undefined;
  const [holds, payments, keys, ledger] = await Promise.all([
    runner.step((redis) => redis.hgetall(holdsKey(tag))),
    runner.step((redis) => redis.hgetall(paymentsKey(tag))),
    runner.step((redis) => redis.scan(accountPattern(tag))),
    wholeLedger(runner, scripts, tag),
  ]);
  const settled = suffixes(keys, settledKey(tag, ""));
  return {
    account,
    seq: Number(fields.seq),
    inFlight: Number(fields.conc),
    inFlightByScope: Object.fromEntries(entriesOf(fields, "c:").map(([scope, count]) => [scope, Number(count)])),
    keys: entriesOf(fields, "k:")
      .map(([, json]) => toKey(tag, json))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
    entitlements: entriesOf(fields, "e:").map(([id, json]) => entitlementOf(fields, id, json)),
    holds: entriesOf(holds, "").map(([requestId, json]) => holdOf(requestId, JSON.parse(json) as HoldRecord)),
    buckets: Object.fromEntries(entriesOf(fields, "tb:").map(([name, stored]) => [name, bucketOf(stored)])),
    settled,
    halfDone: {
      todo: fields.todo !== undefined,
      marksWithoutLine: await marksWithoutLine(runner, tag, settled, ledger),
    },
    ledger,
    payments: Object.keys(payments).sort(),
    idempotency: await idempotencyOf(runner, tag, suffixes(keys, idempotencyKey(tag, ""))),
    ...(await daysOf(runner, tag, suffixes(keys, dayKey(tag, "")))),
  };
}

/** One step: all days of an account are in its slot. */
export async function readDays(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  since: string,
  until: string,
): Promise<DaySum[]> {
  const days = daysOfSpan(since, until);
  const keys = [...days.map((day) => dayKey(tag, day)), ...days.map((day) => dayCountsKey(tag, day))];
  const hashes = (await runner.script(scripts["days-read"], keys, [])) as string[][];
  return days.flatMap((day, i) => daySumsOf(day, fieldsOf(hashes[i]), fieldsOf(hashes[days.length + i])));
}

function daySumsOf(day: string, sums: Fields, counts: Fields): DaySum[] {
  return entriesOf(sums, "").map(([field, amount]) => daySumOf(day, field, BigInt(amount), countsOf(counts, field)));
}

function countsOf(counts: Fields, field: string): UsageCounts {
  return countsFrom((kind) => Number(counts[countField(kind, field)] ?? 0));
}

/** @param flat fields and values in turn. */
function fieldsOf(flat: readonly string[] = []): Fields {
  const fields: Record<string, string> = {};
  for (let i = 0; i + 1 < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string;
  return fields;
}

async function wholeLedger(runner: Runner, scripts: Scripts, tag: AccountTag): Promise<LedgerLine[]> {
  const lines: LedgerLine[] = [];
  for (;;) {
    const page = await readLedger(runner, scripts, tag, lines.at(-1)?.seq ?? 0, LEDGER_PAGE_MAX);
    lines.push(...page);
    if (page.length < LEDGER_PAGE_MAX) return lines;
  }
}

async function daysOf(
  runner: Runner,
  tag: AccountTag,
  found: readonly string[],
): Promise<Pick<AccountState, "days" | "counts">> {
  const days: Record<string, Record<string, NanoUsd>> = {};
  const counts: Record<string, Record<string, UsageCounts>> = {};
  for (const day of found) {
    const sums = await runner.step((redis) => redis.hgetall(dayKey(tag, day)));
    const counted = await runner.step((redis) => redis.hgetall(dayCountsKey(tag, day)));
    for (const { amount, counts: one, ...sum } of daySumsOf(day, sums, counted)) {
      const field = dayField(sum.group, sum.model, sum.key);
      days[day] = { ...days[day], [field]: amount };
      if (one.requests !== 0) counts[day] = { ...counts[day], [field]: one };
    }
  }
  return { days, counts };
}

/** A mark is gone before its lines may be archived. */
async function marksWithoutLine(
  runner: Runner,
  tag: AccountTag,
  settled: readonly string[],
  ledger: readonly LedgerLine[],
): Promise<string[]> {
  const told = new Set(ledger.map(({ reference }) => reference));
  const lacking: string[] = [];
  for (const requestId of settled.filter((id) => !told.has(id))) {
    const mark = await runner.step((redis) => redis.get(settledKey(tag, requestId)));
    // The amount, the hold's record, and in marks of later versions the number of the first line, if there was to be one.
    const [amount, , first = ""] = mark === null ? ["0"] : (JSON.parse(mark) as string[]);
    if (first !== "" || amount !== "0") lacking.push(requestId);
  }
  return lacking;
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

function entitlementOf(fields: Fields, id: string, json: string): Entitlement {
  const fixed = JSON.parse(json) as string[];
  return toEntitlement([...fixed, fields[`ep:${id}`] ?? "0", fields[`eh:${id}`] ?? "0"]);
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
