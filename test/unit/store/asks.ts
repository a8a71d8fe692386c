/** Requests to the store with every field filled in, so that a test names only those that it is about. */
import { createHash } from "node:crypto";
import type { AdmitAsk, AdmitRefused, Admitted, GroupTerms } from "../../../src/store/admission.ts";
import type { Store } from "../../../src/store/contract.ts";
import type { LeftUnpaid, SettleAsk } from "../../../src/store/settlement.ts";
import type { CodeHash } from "../../../src/values/code.ts";
import type { AccountTag, KeyHash } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { RequestId } from "../../../src/values/request-id.ts";

export const tagOf = (text: string): AccountTag => text.padEnd(10, "0") as AccountTag;
export const hashOf = (text: string): KeyHash => createHash("sha256").update(text).digest("hex") as KeyHash;
export const codeHashOf = (text: string): CodeHash => createHash("sha256").update(text).digest("hex") as CodeHash;
export const ridOf = (number: number): RequestId => number.toString(16).padStart(32, "0") as RequestId;

export const DAY_MS = 86_400_000;

type Amounts = { holdFull?: bigint; holdMin?: bigint };

export function terms(changes: Partial<Omit<GroupTerms, keyof Amounts>> & Amounts = {}): GroupTerms {
  const { holdFull = 100n, holdMin = 10n, ...rest } = changes;
  return {
    group: "big",
    kind: "pay_per_use",
    requestsPerMinute: undefined,
    tokensPerMinute: undefined,
    concurrency: 100,
    perKey: false,
    ...rest,
    holdFull: nanoUsd(holdFull),
    holdMin: nanoUsd(holdMin),
  };
}

export const cardTerms = (changes: Parameters<typeof terms>[0] = {}): GroupTerms =>
  terms({ group: "cards", kind: "time_card", ...changes });

export function admitAsk(changes: Partial<AdmitAsk> & Pick<AdmitAsk, "tag" | "requestId">): AdmitAsk {
  return {
    keyHash: hashOf("key"),
    model: "big-1",
    address: "",
    plans: ["free"],
    groups: [terms()],
    inputTokens: 0,
    holdTtlMs: 60_000,
    again: false,
    ...changes,
  };
}

type Settle = Partial<Omit<SettleAsk, "amount" | "absorbed">> & { amount?: bigint; absorbed?: bigint };

/**
 * What a client that disconnected is charged beyond its allowance; `cost` is what its upstream then bills, none of it absorbed.
 */
export function leftUnpaid(
  allowance: bigint,
  amount: bigint,
  { memo = "{}", cost = 40n }: { readonly memo?: string; readonly cost?: bigint } = {},
): LeftUnpaid {
  const tokens = { input: 30, cachedInput: 0, cacheWrite: 0, output: 0, reasoning: 0 };
  const bill = { upstream: "east", model: "m-east", requests: 1, tokens, absorbed: nanoUsd(0n), charged: true };
  return {
    allowance: nanoUsd(allowance),
    amount: nanoUsd(amount),
    memo,
    costs: [{ ...bill, cost: nanoUsd(cost) }],
  };
}

/** The settlement of an admitted request. */
export function settleAsk(
  ask: Pick<AdmitAsk, "tag" | "requestId" | "groups">,
  admitted: Pick<Admitted, "storeTimeMs" | "group" | "keyId" | "entitlement">,
  changes: Settle = {},
): SettleAsk {
  const { amount = 0n, absorbed = 0n, ...rest } = changes;
  const group = ask.groups.find((g) => g.group === admitted.group);
  return {
    requestId: ask.requestId,
    tag: ask.tag,
    admittedAtMs: admitted.storeTimeMs,
    group: admitted.group,
    kind: group?.kind ?? "pay_per_use",
    entitlement: admitted.entitlement,
    keyId: admitted.keyId,
    perKey: group?.perKey ?? false,
    model: "big-1",
    absorbedCause: undefined,
    upstream: undefined,
    tokensTaken: 0,
    tokensUsed: 0,
    tokensPerMinute: group?.tokensPerMinute,
    voided: false,
    memo: "{}",
    ...rest,
    amount: nanoUsd(amount),
    absorbed: nanoUsd(absorbed),
  };
}

/** The memo of a charge of this many tokens, at one nano-dollar each. */
export function memoOf(input: number, output: number): string {
  const price = "1000000";
  return JSON.stringify({
    ...{ input, cached_input: 0, cache_write: 0, cache_write_1h: 0, output, reasoning: 0, tool_calls: {} },
    ...{ price_input: price, price_cached_input: price, price_cache_write: price, price_cache_write_1h: price },
    ...{ price_output: price, price_tools: {}, multiplier: "1000000", hold: "1000000" },
    ...{ counted: "upstream", ended: "complete" },
  });
}

/** The answer, which must be an admission; throws the cause of a refusal. */
export function admitted(answer: Admitted | AdmitRefused): Admitted {
  if (answer.outcome === "admitted") return answer;
  throw new Error(`refused: ${answer.cause}`);
}

/** The cause of a refusal, or "admitted". */
export const causeOf = (answer: Admitted | AdmitRefused): string =>
  answer.outcome === "refused" ? answer.cause : answer.outcome;

/** Creates an account with one key in one group, and funds. */
export async function makeAccount(
  store: Store,
  name: string,
  options: { group?: string; funds?: bigint; plan?: string } = {},
): Promise<AccountTag> {
  const tag = tagOf(name);
  await store.createAccount({ tag, name, plan: options.plan ?? "free" });
  await store.createKey(tag, { id: `key_${name}`, hash: hashOf("key"), group: options.group ?? "big" });
  const funds = options.funds ?? 1_000n;
  if (funds > 0n) await store.credit(tag, { id: "first", amount: funds, kind: "topup", note: "" });
  return tag;
}
