/**
 * What a store accepts. Amounts and counts are whole numbers within their limits at this border. Anything else is a
 * defect of the caller and throws before anything is sent or changed (docs/failure-model.md invariant 8).
 */
import { byText } from "../values/collections/by-text.ts";
import type { IdempotentRequest } from "../values/idempotency.ts";
import { NANO_USD_MAX } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";
import { TOKEN_COUNT_MAX } from "../values/tokens/usage.ts";
import type { AdmitAsk, GroupTerms } from "./admission.ts";
import type { Store } from "./contract.ts";
import type { ExtendAsk } from "./extension.ts";
import { FIGURES_DAYS_MAX, FIGURES_FIELDS_MAX, FIGURES_MAX, type FiguresAsk } from "./figures.ts";
import { ARCHIVE_LINES_MAX } from "./ledger/opening.ts";
import { limitsText, readLimitsText } from "./limits/limits.ts";
import { GATEWAY_OUTBOX, type NewNotice, type Outbox } from "./notices.ts";
import type { AccountChange, KeyChange, KeyRotation, KeyUse } from "./records.ts";
import { type CardFacts, CODES_MAX } from "./records.ts";
import {
  ABSORBED_ATTEMPTS_MAX,
  type AbsorbedAttempt,
  chargedInstead,
  type LeftUnpaid,
  SETTLED_IDS_MAX,
  type SettleAsk,
  UPSTREAM_COSTS_MAX,
  type UpstreamCost,
} from "./settlement.ts";
import { type NewSignIn, SIGN_IN_DATA_BYTES_MAX, type SignInKind, type SignInOwner } from "./sign-ins.ts";
import { startOfDay } from "./sums/day-sums.ts";
import type { TokenSums } from "./sums/token-sums.ts";

/** The longest name, id or note that is stored. */
const TEXT_CHARS_MAX = 16_384;
const NAME_CHARS_MAX = 256;
const NOTICE_FACTS_MAX = 16;
/** All kinds of tokens of one request together; each kind is accepted up to TOKEN_COUNT_MAX. */
const TOKENS_MAX = 8 * TOKEN_COUNT_MAX;
const UPSTREAM_TOKENS_MAX = UPSTREAM_COSTS_MAX * TOKENS_MAX;
/** The largest page of a listing or of the ledger. */
export const PAGE_MAX = 200;
export const LEDGER_PAGE_MAX = 1_000;
/** The most by which a balance's totals may grow. It is below 2^63, so that no counter overflows inside a script. */
export const TOTAL_MAX = 9_000_000_000_000_000_000n;

function demand(holds: boolean, what: string): asserts holds {
  if (!holds) throw new RangeError(`store: ${what}`);
}

const isCount = (value: number, max: number): boolean => Number.isSafeInteger(value) && value >= 0 && value <= max;
/** Every member is checked, whatever its name, because each becomes a sum. */
function areCounts(tokens: TokenSums, max: number): boolean {
  for (const kind in tokens) if (!isCount(tokens[kind as keyof TokenSums], max)) return false;
  return true;
}
const isAmount = (value: bigint): boolean => typeof value === "bigint" && value >= 0n && value <= NANO_USD_MAX;
const isName = (value: string): boolean => value.length > 0 && value.length <= NAME_CHARS_MAX;

/** Whether a text matches. The result is remembered for keys and addresses that come again: 0.1 us instead of 0.5. */
const matching = (pattern: RegExp) => byText((text) => pattern.test(text));

const isHash = matching(/^[0-9a-f]{64}$/);
const isAddress = matching(/^[01]{0,128}$/);

/** Tags become part of Redis key names. */
export function checkTag(tag: string): void {
  demand(/^[0-9A-Za-z]{1,32}$/.test(tag), "an account tag is 1 to 32 base62 characters");
}

export function checkName(value: string, what: string): void {
  demand(isName(value), `${what} is 1 to ${NAME_CHARS_MAX} characters`);
}

/** Both sets of a key's limits fit into a record of the journal. */
export const LIMITS_CHARS_MAX = 6_000;

/** A text made by `limitsText`, of sensible length. */
export function checkLimits(text: string): void {
  demand(
    text.length <= LIMITS_CHARS_MAX && limitsText(readLimitsText(text)) === text,
    "limits are a text made by limits.ts",
  );
  const { budgets = {}, requestsPerMinute = 1, tokensPerMinute = 1, concurrency = 1 } = readLimitsText(text);
  demand(Object.values(budgets).every(isAmount), "a budget is an amount");
  for (const limit of [requestsPerMinute, tokensPerMinute, concurrency]) {
    demand(limit >= 1 && isCount(limit, TOKEN_COUNT_MAX), "a limit is a whole number above 0");
  }
}

export function checkAccountChange({ status = "normal", labels = {} }: AccountChange): void {
  demand(status === "normal" || status === "suspended", "the new status of an account is normal or suspended");
  for (const [name, value] of Object.entries(labels)) {
    demand(/^[A-Za-z0-9_.-]{1,64}$/.test(name), "a label has a name of 1 to 64 characters");
    demand(value.length <= NAME_CHARS_MAX, `a label is at most ${NAME_CHARS_MAX} characters`);
  }
}

/** For a new key, or a change to a key. */
export function checkKeyChange(change: KeyChange): void {
  const { group, name = "", status = "normal", expiresAtMs = "never", limits = "", caps = "" } = change;
  checkLimits(limits);
  checkLimits(caps);
  if (group !== undefined) checkName(group, "a group");
  demand(name.length <= NAME_CHARS_MAX, `a key's name is at most ${NAME_CHARS_MAX} characters`);
  demand(status === "normal" || status === "suspended", "the new status of a key is normal or suspended");
  demand(expiresAtMs === "never" || isCount(expiresAtMs, Number.MAX_SAFE_INTEGER), "the expiry of a key is an instant");
}

export function checkUses(uses: readonly KeyUse[]): void {
  for (const { keyId, atMs, from, by } of uses) {
    checkName(keyId, "a key id");
    demand(isCount(atMs, Number.MAX_SAFE_INTEGER), "a key is used at an instant");
    demand(from.length <= NAME_CHARS_MAX && by.length <= NAME_CHARS_MAX, "the texts of a key use are short");
  }
}

export function checkRotation(rotation: KeyRotation): void {
  checkKeyHash(rotation.hash);
  const ms = "untilMs" in rotation ? rotation.untilMs : rotation.overlapMs;
  demand(isCount(ms, Number.MAX_SAFE_INTEGER), "the old value of a key works for whole milliseconds");
}

/** An account's tag; empty for the gateway's own queue. */
export function checkOutbox(outbox: Outbox): void {
  if (outbox !== GATEWAY_OUTBOX) checkTag(outbox);
}

export function checkNotice({ kind, ref, data }: NewNotice): void {
  checkName(kind, "a kind of notice");
  checkName(ref, "the reference of a notice");
  const facts = Object.entries(data);
  demand(facts.length <= NOTICE_FACTS_MAX, "a notice has too many facts");
  for (const fact of facts.flat()) demand(fact.length <= NAME_CHARS_MAX, "a notice's facts are short");
}

export function checkNotifyBelow(below: bigint | undefined): void {
  demand(below === undefined || isAmount(below), "a threshold is an amount");
}

export function checkKeyHash(hash: string): void {
  demand(isHash(hash), "a key hash is 64 hex digits");
}

function checkRequestId(id: string): void {
  demand(/^[0-9A-Za-z_-]{1,64}$/.test(id), "a request id is 1 to 64 characters of base64url");
}

function checkIdempotency({ key, fingerprint }: IdempotentRequest): void {
  for (const hash of [key, fingerprint]) demand(/^[0-9a-f]{64}$/.test(hash), "an idempotency hash is 64 hex digits");
}

function checkTerms(terms: GroupTerms): void {
  checkName(terms.group, "a group");
  demand(isAmount(terms.holdFull) && isAmount(terms.holdMin), "holds are amounts");
  demand(terms.holdMin <= terms.holdFull, "holdMin is at most holdFull");
  const { worstCase } = terms;
  demand(!worstCase || (isAmount(worstCase.holdFull) && isAmount(worstCase.holdMin)), "worst-case holds are amounts");
  demand(!worstCase || worstCase.holdMin <= worstCase.holdFull, "a worst-case holdMin is at most its holdFull");
  for (const limit of [terms.requestsPerMinute, terms.tokensPerMinute]) {
    demand(limit === undefined || (limit >= 1 && isCount(limit, TOKEN_COUNT_MAX)), "a limit is a whole number above 0");
  }
  demand(isCount(terms.concurrency, TOKEN_COUNT_MAX), "concurrency is a whole number");
}

export function checkAdmit(ask: AdmitAsk): void {
  checkRequestId(ask.requestId);
  checkTag(ask.tag);
  checkKeyHash(ask.keyHash);
  demand(isCount(ask.inputTokens, TOKENS_MAX), "inputTokens is a whole number");
  demand(isCount(ask.holdTtlMs, 1e12) && ask.holdTtlMs > 0, "holdTtlMs is a whole number above 0");
  for (const terms of ask.groups) checkTerms(terms);
  demand(ask.model.length <= NAME_CHARS_MAX && isAddress(ask.address), "a model name is short, and an address is bits");
  if (ask.idempotency) checkIdempotency(ask.idempotency);
}

export function checkExtend(ask: ExtendAsk): void {
  checkRequestId(ask.requestId);
  checkTag(ask.tag);
  demand(isAmount(ask.target), "a target is an amount");
}

export function checkSettle(ask: SettleAsk): void {
  checkRequestId(ask.requestId);
  checkTag(ask.tag);
  demand(isAmount(ask.amount) && isAmount(ask.absorbed), "amount and absorbed are amounts");
  demand(!ask.voided || ask.amount === 0n, "a voided request has no amount");
  demand(ask.voided || ask.kind !== "time_card" || ask.entitlement !== undefined, "a time card charge names its card");
  demand(isCount(ask.admittedAtMs, Number.MAX_SAFE_INTEGER), "admittedAtMs is a whole number");
  demand(isCount(ask.tokensTaken, TOKENS_MAX) && isCount(ask.tokensUsed, TOKENS_MAX), "tokens are counts");
  demand(
    ask.tokensPerMinute === undefined || (ask.tokensPerMinute >= 1 && isCount(ask.tokensPerMinute, TOKEN_COUNT_MAX)),
    "a limit is a whole number above 0",
  );
  demand(ask.tokens === undefined || areCounts(ask.tokens, TOKENS_MAX), "tokens by kind are counts");
  demand(ask.memo.length <= TEXT_CHARS_MAX, "a memo is short");
  if (ask.attempts) checkAttempts(ask.attempts);
  checkCosts(ask);
  if (ask.leftUnpaid) checkLeftUnpaid(ask, ask.leftUnpaid);
  if (!ask.idempotency) return;
  checkIdempotency(ask.idempotency);
  demand(isCount(ask.idempotency.untilMs, Number.MAX_SAFE_INTEGER), "an idempotency key ends at an instant");
}

function checkAttempts(attempts: readonly AbsorbedAttempt[]): void {
  demand(attempts.length <= ABSORBED_ATTEMPTS_MAX, "attempts are few");
  for (const { amount, memo } of attempts) {
    demand(isAmount(amount) && amount > 0n && memo.length <= TEXT_CHARS_MAX, "an attempt has an amount and a memo");
  }
}

function checkLeftUnpaid(ask: SettleAsk, left: LeftUnpaid): void {
  const { voided, kind, entitlement } = ask;
  const { allowance, amount, memo } = left;
  demand(voided, "only a voided request can be left unpaid");
  demand(
    isAmount(allowance) && isAmount(amount) && amount > 0n,
    "an allowance is an amount, and so is a charge above 0",
  );
  demand(memo.length <= TEXT_CHARS_MAX, "a memo is short");
  demand(kind !== "time_card" || entitlement !== undefined, "a time card charge names its card");
  checkCosts(chargedInstead(ask, left));
}

/** Upstreams and models become fields of the sums per day, so each pair may be in a settlement only once. */
function checkCosts({ costs, voided }: SettleAsk): void {
  if (!costs) return;
  demand(costs.length <= UPSTREAM_COSTS_MAX, "costs are few");
  // Usually there is only one.
  demand(costs.length < 2 || new Set(costs.map(nameOfCost)).size === costs.length, "each cost is listed once");
  let charged = 0;
  for (const cost of costs) {
    if (cost.charged) charged++;
    checkCost(cost);
  }
  demand(charged === (voided ? 0 : 1), "a charge is for one of its costs");
}

function nameOfCost({ upstream, model }: UpstreamCost): string {
  return `${upstream}|${model}`;
}

function checkCost({ upstream, model, requests, tokens, cost, absorbed }: UpstreamCost): void {
  checkName(upstream, "an upstream");
  demand(!upstream.includes("|"), "the name of an upstream contains no vertical bar");
  checkName(model, "an upstream's model");
  demand(
    isCount(requests, UPSTREAM_TOKENS_MAX) && areCounts(tokens, UPSTREAM_TOKENS_MAX),
    "tokens by upstream are counts",
  );
  demand(isAmount(cost) && isAmount(absorbed) && absorbed <= cost, "a cost is an amount, absorbed a part of it");
}

export function checkCredit(payment: Parameters<Store["credit"]>[1]): void {
  checkName(payment.id, "a payment id");
  const size = payment.amount < 0n ? -payment.amount : payment.amount;
  demand(isAmount(size), "a payment is an amount");
  demand(payment.note.length <= TEXT_CHARS_MAX, "a note is short");
}

export function checkGrant(entitlement: Parameters<Store["grant"]>[1]): void {
  checkName(entitlement.id, "an entitlement id");
  checkCard(entitlement);
}

function checkCard(card: Pick<CardFacts, "card" | "plan" | "group" | "lastsMs" | "quota">): void {
  checkName(card.card, "a card kind");
  checkName(card.plan, "a plan");
  checkName(card.group, "a group");
  demand(isCount(card.lastsMs, 1e13) && card.lastsMs > 0, "lastsMs is a whole number above 0");
  demand(card.quota === undefined || isAmount(card.quota), "a quota is an amount");
}

/** Hashes become part of Redis key names. */
export function checkCodeHash(hash: string): void {
  demand(/^[0-9a-f]{64}$/.test(hash), "a code hash is 64 hex digits");
}

export function checkCodes(...[facts, codes, batch]: Parameters<Store["createCodes"]>): void {
  checkCard(facts);
  const { expiresAtMs = 0, batch: id } = facts;
  demand(isCount(expiresAtMs, Number.MAX_SAFE_INTEGER), "the expiry of codes is an instant");
  if (id !== undefined) checkName(id, "a batch id");
  if (batch) {
    demand(id !== undefined, "a batch has an id");
    checkName(batch.label, "a label");
    demand(isCount(batch.count, CODES_MAX), `a batch has at most ${CODES_MAX} codes`);
  }
  demand(codes.length <= CODES_MAX, `at most ${CODES_MAX} codes are made at once`);
  for (const { id, hash } of codes) {
    checkName(id, "a code id");
    checkCodeHash(hash);
  }
}

/** Ids of the codes that one step voids. */
export function checkIds(ids: readonly string[]): void {
  demand(ids.length <= PAGE_MAX, `at most ${PAGE_MAX} codes are named at once`);
}

export function checkRequestIds(requestIds: readonly RequestId[]): void {
  demand(requestIds.length <= SETTLED_IDS_MAX, `at most ${SETTLED_IDS_MAX} requests are asked for at once`);
}

export function checkSignInOwner(owner: SignInOwner): void {
  if (owner !== "operator") checkTag(owner);
}

/** Kind and id become a field of a hash. */
export function checkSignInPlace(owner: SignInOwner, kind: SignInKind, id = "all"): void {
  checkSignInOwner(owner);
  const isKind = kind === "link" || kind === "passkey" || kind === "session" || kind === "spent";
  demand(isKind, "a sign-in is a link, a passkey, a session or a spent challenge");
  demand(/^[A-Za-z0-9_-]{1,344}$/.test(id), "a sign-in's id is 1 to 344 characters of base64url");
}

export function checkSignInKinds(owner: SignInOwner, ...kinds: readonly SignInKind[]): void {
  demand(kinds.length > 0, "at least one kind of sign-ins is named");
  for (const kind of kinds) checkSignInPlace(owner, kind);
}

export function checkSignIn(owner: SignInOwner, { kind, id, data, lastsMs = 1, by }: NewSignIn): void {
  checkSignInPlace(owner, kind, id);
  if (by !== undefined) checkSignInPlace(owner, by.kind, by.id);
  demand(data.isWellFormed() && Buffer.byteLength(data) <= SIGN_IN_DATA_BYTES_MAX, "a sign-in's data is a short text");
  demand(isCount(lastsMs, 1e13) && lastsMs > 0, "lastsMs is a whole number above 0");
}

export function checkArchive({ after, opening }: { after: number; opening: { seq: number; kind: string } }): void {
  demand(isCount(after, Number.MAX_SAFE_INTEGER) && Number.isSafeInteger(opening.seq), "line numbers are whole");
  const lines = opening.seq - after;
  demand(lines >= 1 && lines <= ARCHIVE_LINES_MAX, `1 to ${ARCHIVE_LINES_MAX} lines are archived at once`);
  demand(opening.kind === "opening", "an opening line is one");
}

export function checkFigures(ask: FiguresAsk): void {
  const { cards, requests, payments, scopes, keys, spent } = ask;
  for (const names of [cards, requests, payments, scopes, keys]) {
    demand((names?.length ?? 0) <= FIGURES_MAX, `at most ${FIGURES_MAX} names of one kind are asked for`);
  }
  const { days = [], fields = [] } = spent ?? {};
  demand(days.length <= FIGURES_DAYS_MAX, `at most ${FIGURES_DAYS_MAX} days are asked for`);
  demand(fields.length <= FIGURES_FIELDS_MAX, `at most ${FIGURES_FIELDS_MAX} fields are asked for`);
  // These become part of Redis key names.
  for (const day of days) demand(startOfDay(day) !== undefined, "a day is YYYY-MM-DD");
}

/** Clamps the size of a page to [1, max]. */
export function pageSize(limit: number, max: number): number {
  demand(Number.isSafeInteger(limit), "a page size is a whole number");
  return Math.min(Math.max(limit, 1), max);
}
