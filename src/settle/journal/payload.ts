/**
 * Encodes and decodes the payloads of records as JSON. Amounts are decimal strings; an undecodable payload is not a
 * record.
 */

import type { AbsorbedAttempt, SettleAsk, UpstreamCost } from "../../store/settlement.ts";
import type { TokenSums } from "../../store/sums/token-sums.ts";
import type { KeptRequest } from "../../values/idempotency.ts";
import { type JsonObject, objectOf } from "../../values/json-object.ts";
import { numeral, quote, word } from "../../values/json-text.ts";
import type { AccountTag } from "../../values/key.ts";
import { type NanoUsd, parseNano } from "../../values/money.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { AckOutcome, AdminRecord } from "../journal.ts";
import { quotedMemo } from "../memo.ts";

/** How far a verification pass has come: everything before this position is verified. */
export interface JournalPosition {
  readonly segment: number;
  readonly offset: number;
}

/** What verification must remember across a restart. */
export interface Progress {
  /** One position per pass. */
  readonly verified: readonly JournalPosition[];
  /** The store that was verified; a different one may have lost something. */
  readonly identity: string | undefined;
  /**
   * When this store last answered with its identity, by the journal's time. A later acknowledgement may have come from a
   * different store.
   */
  readonly sureAtMs?: number | undefined;
}

/** The first record of a segment. */
export interface SegmentStart {
  readonly number: number;
  /** The previous segment and where its records end; anything after that was given up on purpose. */
  readonly previous: JournalPosition | undefined;
  readonly progress: Progress;
}

export interface ChargePayload {
  readonly ask: SettleAsk;
  readonly orphan: boolean;
}

interface AckPayload {
  readonly id: RequestId;
  readonly outcome: AckOutcome;
}

/** As JSON; a bigint becomes a decimal string. */
export function encode(value: object): string {
  return JSON.stringify(plain(value));
}

/** A settlement as JSON; not by JSON.stringify, because each request writes two of them. */
export function encodeCharge(ask: SettleAsk, more: { readonly hold?: NanoUsd; readonly orphan?: boolean }): string {
  const orphan = more.orphan === undefined ? "" : `,"orphan":${more.orphan}`;
  const hold = more.hold === undefined ? "" : `,"hold":"${more.hold}"`;
  const request = `"requestId":${quote(ask.requestId)},"tag":${quote(ask.tag)},"admittedAtMs":${numeral(ask.admittedAtMs)}`;
  return `{"ask":{${request}${whoPays(ask)}${whatIsPaid(ask)}${beside(ask)}}${orphan}${hold}}`;
}

/** An ACK as JSON; each request writes one. */
export function encodeAck({ id, outcome }: AckPayload): string {
  return `{"id":${quote(id)},"outcome":"${outcome}"}`;
}

/*
 * Members are written in the order in which CHARGE_HEAD reads them. A member added to SettleAsk must be added below
 * too; a test checks that every member survives the round trip.
 */

/** Whose charge it is and for which model: the members that whoPays writes. */
type PayerFacts = Pick<SettleAsk, "group" | "kind" | "entitlement" | "keyId" | "perKey" | "model">;

/** By key: both records of a request have the same payer, and usually the key's next request too. */
const payers = new Map<string, { readonly payer: PayerFacts; readonly text: string }>();
const PAYERS_MAX = 1_000;

function whoPays({ group, kind, entitlement, keyId, perKey, model }: SettleAsk): string {
  const last = payers.get(keyId);
  if (last) {
    const { payer, text } = last;
    const isSame = payer.group === group && payer.kind === kind && payer.entitlement === entitlement;
    if (isSame && payer.perKey === perKey && payer.model === model) return text;
  } else if (payers.size >= PAYERS_MAX) payers.clear();
  const payer = { group, kind, entitlement, keyId, perKey, model };
  const text = `,${JSON.stringify(payer).slice(1, -1)},`;
  payers.set(keyId, { payer, text });
  return text;
}

function whatIsPaid(ask: SettleAsk): string {
  const { tokensPerMinute, tokens } = ask;
  const where = `${optional(',"absorbedCause":', ask.absorbedCause)}${optional(',"upstream":', ask.upstream)}`;
  const limit = tokensPerMinute === undefined ? "" : `,"tokensPerMinute":${numeral(tokensPerMinute)}`;
  const counted = optional(',"counted":', ask.counted);
  const sums = tokens === undefined ? "" : `,"tokens":${sumsText(tokens)}`;
  const taken = `,"tokensTaken":${numeral(ask.tokensTaken)},"tokensUsed":${numeral(ask.tokensUsed)}`;
  return `"amount":"${ask.amount}","absorbed":"${ask.absorbed}"${where}${taken}${limit}${counted}${sums}`;
}

function beside({ voided, attempts, costs, memo, leftUnpaid, idempotency }: SettleAsk): string {
  const failed = attempts === undefined ? "" : `,"attempts":${encode(attempts)}`;
  const bills = costs === undefined ? "" : `,"costs":[${costs.map(costText).join()}]`;
  const left = leftUnpaid === undefined ? "" : `,"leftUnpaid":${encode(leftUnpaid)}`;
  const kept = idempotency === undefined ? "" : `,"idempotency":${JSON.stringify(idempotency)}`;
  return `,"voided":${voided}${failed}${bills},"memo":${quotedMemo(memo)}${left}${kept}`;
}

function optional(name: string, text: string | undefined): string {
  return text === undefined ? "" : name + quote(text);
}

function sumsText({ input, cachedInput, cacheWrite, output, reasoning }: TokenSums): string {
  const read = `"input":${numeral(input)},"cachedInput":${numeral(cachedInput)},"cacheWrite":${numeral(cacheWrite)}`;
  return `{${read},"output":${numeral(output)},"reasoning":${numeral(reasoning)}}`;
}

function costText({ upstream, model, requests, tokens, cost, absorbed, charged }: UpstreamCost): string {
  const where = `"upstream":${word(upstream).plain},"model":${word(model).plain},"requests":${numeral(requests)}`;
  return `{${where},"tokens":${sumsText(tokens)},"cost":"${cost}","absorbed":"${absorbed}","charged":${charged}}`;
}

/** A copy that JSON can express. Takes half the time of a replacer, which the runtime calls for each member. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  const copy: Record<string, unknown> = {};
  for (const name in value) copy[name] = plain((value as JsonObject)[name]);
  return copy;
}

function parse(payload: Buffer | string): JsonObject | undefined {
  try {
    return objectOf(JSON.parse(payload.toString()));
  } catch {
    return undefined;
  }
}

/** What verification looks up in the store, and the whole record as text in case all of it is needed. */
export interface RecordedCharge extends Pick<SettleAsk, "requestId" | "tag" | "amount"> {
  readonly record: string;
}

/**
 * The first members that `encodeCharge` writes, up to the amount. Quotes in texts are escaped, so no text can look like
 * a member.
 */
const CHARGE_HEAD = /^\{"ask":\{"requestId":"([^"\\]+)","tag":"([^"\\]+)",[^[\]{}]*?,"amount":"(\d+)"/;

/** Reads only what verification looks up first; takes a fifth of the time of decoding the whole charge. */
export function readCharge(payload: Buffer): RecordedCharge | undefined {
  const record = payload.toString();
  const [, requestId, tag, digits = ""] = CHARGE_HEAD.exec(record) ?? [];
  const amount = parseNano(digits);
  if (amount !== undefined) return { requestId: requestId as RequestId, tag: tag as AccountTag, amount, record };
  const ask = decodeCharge(record)?.ask;
  return ask && { requestId: ask.requestId, tag: ask.tag, amount: ask.amount, record };
}

/** OPEN, CHECKPOINT and FINAL all carry a settlement. */
export function decodeCharge(payload: Buffer | string): ChargePayload | undefined {
  const json = parse(payload);
  const ask = askOf(objectOf(json?.ask));
  return ask && { ask, orphan: json?.orphan === true };
}

/** The form that `encodeAck` writes. */
const ACK = /^\{"id":"([^"\\]+)","outcome":"(settled|dead)"\}$/;

/** By regular expression first: 0.25 us instead of 0.5 for JSON.parse, and verification reads each ACK twice. */
export function decodeAck(payload: Buffer): AckPayload | undefined {
  const text = payload.toString();
  const [, id, outcome] = ACK.exec(text) ?? [];
  if (id !== undefined) return { id: id as RequestId, outcome: outcome as AckOutcome };
  const json = parse(text);
  if (typeof json?.id !== "string" || (json.outcome !== "settled" && json.outcome !== "dead")) return undefined;
  return { id: json.id as RequestId, outcome: json.outcome };
}

export function decodeAdmin(payload: Buffer): AdminRecord | undefined {
  const json = parse(payload);
  const body = objectOf(json?.payload);
  if (typeof json?.kind !== "string" || typeof json.id !== "string" || !body) return undefined;
  return { kind: json.kind as AdminRecord["kind"], id: json.id, payload: body };
}

export function decodeProgress(payload: Buffer): Progress | undefined {
  return progressOf(parse(payload));
}

export function decodeSegmentStart(payload: Buffer): SegmentStart | undefined {
  const json = parse(payload);
  const progress = progressOf(objectOf(json?.progress));
  if (!isCount(json?.number) || !progress) return undefined;
  return { number: json.number, previous: placeOf(json.previous), progress };
}

function progressOf(json: JsonObject | undefined): Progress | undefined {
  if (!json || !Array.isArray(json.verified)) return undefined;
  const verified = json.verified.map(placeOf).filter((place) => place !== undefined);
  const identity = typeof json.identity === "string" ? json.identity : undefined;
  return { verified, identity, ...(isCount(json.sureAtMs) ? { sureAtMs: json.sureAtMs } : {}) };
}

function placeOf(value: unknown): JournalPosition | undefined {
  const json = objectOf(value);
  return isCount(json?.segment) && isCount(json.offset) ? { segment: json.segment, offset: json.offset } : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

const TEXTS = ["requestId", "tag", "group", "keyId", "model", "memo"] as const;
const TEXTS_OR_NONE = ["entitlement", "absorbedCause", "upstream", "counted"] as const;
const COUNTS = ["admittedAtMs", "tokensTaken", "tokensUsed"] as const;
const TOKENS = ["input", "cachedInput", "cacheWrite", "output", "reasoning"] as const;
const SWITCHES = ["perKey", "voided"] as const;

function askOf(json: JsonObject | undefined): SettleAsk | undefined {
  if (!json) return undefined;
  const amount = amountOf(json.amount);
  const absorbed = amountOf(json.absorbed);
  const wellFormed =
    TEXTS.every((name) => typeof json[name] === "string") &&
    TEXTS_OR_NONE.every((name) => json[name] === undefined || typeof json[name] === "string") &&
    COUNTS.every((name) => isCount(json[name])) &&
    SWITCHES.every((name) => typeof json[name] === "boolean") &&
    (json.kind === "time_card" || json.kind === "pay_per_use") &&
    (json.tokensPerMinute === undefined || isCount(json.tokensPerMinute)) &&
    areTokens(json.tokens);
  const attempts = json.attempts === undefined ? [] : attemptsOf(json.attempts);
  const costs = json.costs === undefined ? [] : costsOf(json.costs);
  const left = json.leftUnpaid === undefined ? {} : leftOf(objectOf(json.leftUnpaid));
  if (!wellFormed || amount === undefined || absorbed === undefined) return undefined;
  if (!attempts || !costs || !left) return undefined;
  // JSON leaves out undefined members; the contract requires them.
  const { entitlement, absorbedCause, upstream, tokensPerMinute } = json;
  const texts = { entitlement, absorbedCause, upstream };
  const failed = attempts.length > 0 ? { attempts } : {};
  const kept = keptOf(json.idempotency);
  const charge = { ...json, ...texts, amount, absorbed, tokensPerMinute, ...kept, ...failed, ...left };
  return (json.costs === undefined ? charge : { ...charge, costs }) as unknown as SettleAsk;
}

/** Records of older versions have none. A charge is never given up because of a damaged one. */
function keptOf(value: unknown): { readonly idempotency?: KeptRequest | undefined } {
  if (value === undefined) return {};
  const json = objectOf(value);
  const wellFormed =
    typeof json?.key === "string" &&
    typeof json.fingerprint === "string" &&
    typeof json.streamed === "boolean" &&
    isCount(json.untilMs);
  return { idempotency: wellFormed ? (json as unknown as KeptRequest) : undefined };
}

/** Records of older versions have none. */
function leftOf(json: JsonObject | undefined): Pick<SettleAsk, "leftUnpaid"> | undefined {
  const allowance = amountOf(json?.allowance);
  const amount = amountOf(json?.amount);
  const costs = costsOf(json?.costs);
  if (typeof json?.memo !== "string" || allowance === undefined || amount === undefined || !costs) return undefined;
  return { leftUnpaid: { allowance, amount, memo: json.memo, costs } };
}

function attemptsOf(value: unknown): AbsorbedAttempt[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const attempts = value.map((one) => attemptOf(objectOf(one))).filter((attempt) => attempt !== undefined);
  return attempts.length === value.length ? attempts : undefined;
}

function attemptOf(json: JsonObject | undefined): AbsorbedAttempt | undefined {
  const amount = amountOf(json?.amount);
  if (!json || amount === undefined) return undefined;
  const { upstream, cause, memo } = json;
  const texts = typeof upstream === "string" && typeof cause === "string" && typeof memo === "string";
  return texts ? { upstream, cause, amount, memo } : undefined;
}

function costsOf(value: unknown): UpstreamCost[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const costs = value.map((one) => costOf(objectOf(one))).filter((cost) => cost !== undefined);
  return costs.length === value.length ? costs : undefined;
}

function costOf(json: JsonObject | undefined): UpstreamCost | undefined {
  const [cost, absorbed] = [amountOf(json?.cost), amountOf(json?.absorbed)];
  if (!json || cost === undefined || absorbed === undefined) return undefined;
  const { upstream, model, requests, tokens, charged } = json;
  if (typeof upstream !== "string" || typeof model !== "string" || typeof charged !== "boolean") return undefined;
  if (!isCount(requests) || tokens === undefined || !areTokens(tokens)) return undefined;
  return { upstream, model, requests, tokens: tokens as UpstreamCost["tokens"], cost, absorbed, charged };
}

/** Records of older versions have no tokens by kind. */
function areTokens(value: unknown): boolean {
  if (value === undefined) return true;
  const json = objectOf(value);
  return json !== undefined && TOKENS.every((kind) => isCount(json[kind]));
}

function amountOf(value: unknown): SettleAsk["amount"] | undefined {
  return typeof value === "string" ? parseNano(value) : undefined;
}
