/**
 * Records of the store as the admin API shows them: amounts as strings of US dollars, instants as ISO 8601 in UTC.
 */

import { readOpening } from "../../store/ledger/opening.ts";
import type {
  Account,
  CardFacts,
  Code,
  CodeBatch,
  Entitlement,
  Key,
  LedgerLine,
  ListedKey,
} from "../../store/records.ts";
import type { UsageTotal } from "../../store/sums/day-sums.ts";
import { formatUsd } from "../../values/money.ts";
import { attemptsOf, type NotedAttempt } from "../../values/recompute.ts";
import { printReference } from "../../values/request-id.ts";
import { utcDay } from "../../values/time.ts";
import type {
  AccountAnswer,
  BatchAnswer,
  CodeAnswer,
  CostedTotalAnswer,
  KeyAnswer,
  ListedKeyAnswer,
  ListedTimeCardAnswer,
  TimeCardAnswer,
} from "./answers.ts";
import type { AttemptAnswer, LedgerLineAnswer } from "./ledger.ts";
import { showAccountLimits, showKeyBudgets, showKeyLimits } from "./limits.ts";

/** Converts an account. `available_usd` is what a new request may still hold: balance minus holds. */
export function showAccount(account: Account): AccountAnswer {
  return {
    id: account.id,
    name: account.name,
    plan: account.plan,
    status: account.status,
    labels: account.labels,
    balance_usd: formatUsd(account.balance),
    held_usd: formatUsd(account.held),
    available_usd: formatUsd(account.balance - account.held),
    spent_usd: formatUsd(account.spent),
    topped_up_usd: formatUsd(account.topped),
    limits: showAccountLimits(account.limits),
    notify_below_usd: account.notifyBelow === undefined ? null : formatUsd(account.notifyBelow),
    created_at: showInstant(account.createdAtMs),
  };
}

/** Converts a key, without its text, which is not stored. */
export function showKey(key: Key, accountName: string): KeyAnswer {
  return {
    id: key.id,
    account: accountName,
    name: key.name === "" ? null : key.name,
    group: key.group,
    status: key.status,
    limits: showKeyLimits(key.limits),
    caps: showKeyLimits(key.caps),
    previous_until: key.previousUntilMs === undefined ? null : showInstant(key.previousUntilMs),
    expires_at: key.expiresAtMs === undefined ? null : showInstant(key.expiresAtMs),
    created_at: showInstant(key.createdAtMs),
  };
}

/** The same in a list, with its last use and the use of its budgets. */
export function showListedKey(key: ListedKey, accountName: string, nowMs: number): ListedKeyAnswer {
  const { lastUse } = key;
  const shown = lastUse && { at: showInstant(lastUse.atMs), from: lastUse.from || null, by: lastUse.by || null };
  const budgets = showKeyBudgets(key, key.budgets, nowMs);
  return { ...showKey(key, accountName), budgets, last_used: shown ?? null };
}

/** Converts a ledger line. `usage` has what a charge was computed from; `note` is the operator's note. */
export function showLedgerLine(line: LedgerLine): LedgerLineAnswer {
  const charged = line.kind === "usage" || line.kind === "absorbed";
  return {
    seq: line.seq,
    at: showInstant(line.atMs),
    kind: line.kind,
    debit: line.debit,
    credit: line.credit,
    usd: formatUsd(line.amount),
    balance_usd: formatUsd(line.balance),
    // The request's id as the client saw it in `x-request-id` and as the log has it. The id of a payment may look like
    // one, but is the payer's own and is not converted.
    reference: charged ? printReference(line.reference) : line.reference,
    group: line.group,
    model: line.model,
    key: line.key,
    usage: charged ? readUsage(line.memo) : null,
    attempts: charged ? (attemptsOf(line.memo) ?? []).map(showAttempt) : [],
    note: line.kind === "opening" ? openingWords(line) : charged ? "" : line.memo,
  };
}

/** The range of lines that are archived, and since when. */
function openingWords({ seq, memo }: LedgerLine): string {
  const since = readOpening(memo)?.sinceMs;
  return `lines 1 to ${seq} are archived${since === undefined ? "" : `, from ${showInstant(since)} on`}`;
}

/** Converts an attempt at an upstream: what it cost the operator, who pays for it and why. */
function showAttempt(attempt: NotedAttempt): AttemptAnswer {
  return {
    upstream: attempt.upstream,
    model: attempt.model,
    outcome: attempt.outcome,
    status: attempt.status ?? null,
    input_tokens: attempt.input,
    output_tokens: attempt.output,
    counted: attempt.counted,
    cost_usd: formatUsd(attempt.cost),
    paid_by: attempt.paidBy,
    why: attempt.why,
  };
}

/**
 * Converts a time card of an account. `rest_usd` is what a new request may still hold; without a quota, both it and the
 * quota are null.
 */
export function showEntitlement(card: Entitlement): TimeCardAnswer {
  return {
    id: card.id,
    card: card.card ?? null,
    plan: card.plan,
    group: card.group,
    from: showInstant(card.fromMs),
    until: showInstant(card.untilMs),
    quota_usd: card.quota === undefined ? null : formatUsd(card.quota),
    spent_usd: formatUsd(card.spent),
    held_usd: formatUsd(card.held),
    rest_usd: card.quota === undefined ? null : formatUsd(card.quota - card.spent - card.held),
  };
}

/**
 * Converts an account's time cards with the state of each and the card of its group that follows it.
 * @param cards in the order in which they pay: earliest end first
 */
export function showCards(cards: readonly Entitlement[], nowMs: number): ListedTimeCardAnswer[] {
  return cards.map((card, at) => {
    const next = cards.slice(at + 1).find((one) => one.group === card.group && isOfUse(one, nowMs));
    return {
      ...showEntitlement(card),
      running: card.fromMs <= nowMs && nowMs < card.untilMs,
      state: stateOf(card, nowMs),
      next: next === undefined ? null : { id: next.id, card: next.card ?? null, from: showInstant(next.fromMs) },
    };
  });
}

function stateOf(card: Entitlement, nowMs: number): ListedTimeCardAnswer["state"] {
  if (card.untilMs <= nowMs) return "ended";
  if (card.quota !== undefined && card.spent >= card.quota) return "used_up";
  return card.fromMs > nowMs ? "waiting" : "running";
}

const isOfUse = (card: Entitlement, nowMs: number) => ["waiting", "running"].includes(stateOf(card, nowMs));

/** Converts a code, without its text, which is not stored. */
export function showCode(code: Code, nowMs: number): CodeAnswer {
  return {
    id: code.id,
    card: code.card,
    state: hasExpired(code, nowMs) ? "expired" : code.state,
    batch_id: code.batch ?? null,
    ...showWorth(code),
    account_id: code.tag === undefined ? null : `acct_${code.tag}`,
    redeemed_at: code.claimedAtMs === undefined ? null : showInstant(code.claimedAtMs),
  };
}

/** Whether it was not redeemed and can no longer be redeemed. */
export function hasExpired({ state, expiresAtMs }: Code, nowMs: number): boolean {
  return state === "unused" && expiresAtMs !== undefined && expiresAtMs <= nowMs;
}

export function showBatch(batch: CodeBatch): BatchAnswer {
  const { id, label, card, count } = batch;
  return { id, label, card, count, ...showWorth(batch) };
}

/** The members that codes and batches share. */
function showWorth(worth: CardFacts & Pick<Code, "expiresAtMs" | "createdAtMs">) {
  return {
    plan: worth.plan,
    group: worth.group,
    lasts_seconds: worth.lastsMs / 1_000,
    starts: worth.starts,
    quota_usd: worth.quota === undefined ? null : formatUsd(worth.quota),
    redeem_by: showLastDay(worth.expiresAtMs),
    created_at: showInstant(worth.createdAtMs),
  };
}

/** The day that ends at this instant. */
export function showLastDay(endMs: number | undefined): string | null {
  return endMs === undefined ? null : utcDay(endMs - 1);
}

function showInstant(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** The part that owners of accounts see too. */
type UsageTotalAnswer = Omit<CostedTotalAnswer, "cost_usd" | "absorbed_usd" | "margin_usd">;

/** Converts charges with their numbers of requests and tokens; `reasoning_tokens` are included in the output tokens. */
export function showUsageTotal({ amount, counts }: UsageTotal): UsageTotalAnswer {
  return {
    usd: formatUsd(amount),
    requests: counts.requests,
    input_tokens: counts.input,
    cached_input_tokens: counts.cachedInput,
    cache_write_tokens: counts.cacheWrite,
    output_tokens: counts.output,
    reasoning_tokens: counts.reasoning,
  };
}

/** The same with cost and margin, for operators only. */
export function showCostedTotal(total: UsageTotal): CostedTotalAnswer {
  const { amount, cost, absorbed } = total;
  return {
    ...showUsageTotal(total),
    cost_usd: formatUsd(cost),
    absorbed_usd: formatUsd(absorbed),
    margin_usd: formatUsd(amount - cost),
  };
}

/** A memo of a charge is a flat JSON object (store contract, SettleAsk.memo); any other memo is shown as it is. */
function readUsage(memo: string): object | string | null {
  if (memo === "") return null;
  try {
    const { attempts: _, ...usage } = JSON.parse(memo) as { readonly attempts?: unknown };
    return usage;
  } catch {
    return memo;
  }
}
