/** Random operations for the differential test: few accounts, keys, groups, cards and ids, so that they collide. */
import fc from "fast-check";
import type { GroupTerms } from "../../../src/store/admission.ts";
import type { LimitSet } from "../../../src/store/limits/limits.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { DAY_MS, terms } from "./asks.ts";

const HOUR_MS = 3_600_000;

const account = fc.constantFrom(0, 1);
const key = fc.constantFrom(0, 1, 2);
const code = fc.integer({ min: 1, max: 6 });
const batch = fc.constantFrom(undefined, 1, 2);
const rid = fc.integer({ min: 1, max: 30 });
const group = fc.constantFrom("big", "small", "cards", "more");
const plan = fc.constantFrom("free", "pro");
/** Mostly small, so that funds run out; sometimes at the border of 2^53. */
const amount = fc.oneof(
  { weight: 8, arbitrary: fc.bigInt(0n, 200n) },
  { weight: 1, arbitrary: fc.bigInt(8_999_999_999_999_000n, 9_000_000_000_000_000n) },
);
const tokens = fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 0, max: 200 }) }, fc.constantFrom(0, 1_000_000_000));
const limit = fc.constantFrom(undefined, undefined, 1, 3, 60, 1_000, 1_000_000_000);

const termsOf = fc
  .record({
    group,
    holdFull: amount,
    worstCase: fc.option(fc.bigInt(0n, 300n), { nil: undefined }),
    part: fc.integer({ min: 0, max: 4 }),
    requestsPerMinute: limit,
    tokensPerMinute: limit,
    concurrency: fc.constantFrom(2, 10, 100, 100),
    perKey: fc.boolean(),
    fallback: fc.boolean(),
  })
  .map(({ part, worstCase: more, ...rest }): GroupTerms => {
    const kind = rest.group === "cards" || rest.group === "more" ? "time_card" : "pay_per_use";
    const holdMin = (rest.holdFull * BigInt(part)) / 4n;
    const small = more !== undefined && rest.holdFull <= 200n;
    const worstCase = small
      ? { holdFull: nanoUsd(rest.holdFull + more), holdMin: nanoUsd(holdMin + more / 2n) }
      : undefined;
    return terms({ ...rest, kind, holdMin, worstCase });
  });

/** One of two idempotency keys with one of two bodies; half of the requests have none. */
const idempotency = fc.option(fc.record({ key: fc.constantFrom("i1", "i2"), body: fc.constantFrom("x", "x", "y") }), {
  nil: undefined,
});

/** The cost of a request by upstream; how much of each is absorbed is given in quarters. */
const costs = fc.uniqueArray(
  fc.record({
    upstream: fc.constantFrom("east", "west"),
    model: fc.constantFrom("m", "m|^x"),
    requests: fc.integer({ min: 0, max: 2 }),
    tokens: fc.record({
      input: tokens,
      cachedInput: tokens,
      cacheWrite: tokens,
      output: tokens,
      reasoning: tokens,
    }),
    cost: amount,
    absorbedPart: fc.bigInt(0n, 4n),
  }),
  { selector: ({ upstream, model }) => `${upstream} ${model}`, minLength: 1, maxLength: 3 },
);

/** How far the revision of a repeated write is from now; undefined: it is a new write. */
const replayedFromMs = fc.option(fc.constantFrom(-HOUR_MS, 0, 1, HOUR_MS), { nil: undefined, freq: 4 });

const budget = fc
  .oneof({ weight: 6, arbitrary: fc.bigInt(0n, 400n) }, { weight: 1, arbitrary: fc.constant(9_000_000_000_000_000n) })
  .map(nanoUsd);

/** Few and small, so that they are reached, and mostly of one kind, so that others do not refuse first. */
const budgets = fc.record({ day: budget, week: budget, month: budget, total: budget }, { requiredKeys: [] });
const rates = {
  requestsPerMinute: fc.constantFrom(1, 3, 60),
  tokensPerMinute: fc.constantFrom(60, 1_000, 1_000_000_000),
  concurrency: fc.constantFrom(1, 2, 10),
};
const lists = {
  models: fc.constantFrom(["m*"], ["m1"], ["m*", "x"], ["*"]),
  addresses: fc.constantFrom(["10.0.0.0/8"], ["::1", "10.1.0.0/16"], ["fd00::/8", "10.0.0.1"]),
};
const limitSet = fc
  .oneof(
    { weight: 3, arbitrary: fc.record({ budgets }) },
    { weight: 2, arbitrary: fc.record(rates, { requiredKeys: [] }) },
    { weight: 1, arbitrary: fc.record({ budgets, ...rates, ...lists }, { requiredKeys: [] }) },
  )
  .map((limits): LimitSet => limits as LimitSet);

const operator = fc.constantFrom(false, false, true);
/** Few, so that they collide; those of the operator exist beside those of accounts. */
const signIn = {
  kind: fc.constantFrom("link" as const, "passkey" as const, "session" as const),
  id: fc.constantFrom("a", "B-_0", "z".repeat(344)),
  operator,
};

const operation = {
  admit: fc.record({
    do: fc.constant("admit" as const),
    account,
    key: fc.constantFrom(0, 0, 0, 0, 1, 1, 1, 1, 2, 9),
    rid,
    model: fc.constantFrom("m1", "m1", "m2", "x"),
    address: fc.constantFrom("10.0.0.1", "10.0.0.1", "10.1.2.3", "::1", "192.0.2.1", ""),
    plans: fc.constantFrom(["free", "pro"], ["free", "pro"], ["free"], ["pro", "none"], ["none"]),
    groups: fc.uniqueArray(termsOf, { selector: (t) => t.group, minLength: 2, maxLength: 4 }),
    inputTokens: tokens,
    holdTtlMs: fc.constantFrom(1, 1_000, 60_000, DAY_MS),
    again: fc.constantFrom(false, false, true),
    idempotency,
  }),
  extend: fc.record({ do: fc.constant("extend" as const), account, rid, target: amount }),
  settle: fc.record({
    do: fc.constant("settle" as const),
    account,
    rid,
    amount,
    absorbed: fc.oneof(fc.constant(0n), amount),
    tokensTaken: tokens,
    tokensUsed: tokens,
    tokensPerMinute: limit,
    tokens: fc.option(
      fc.record({ input: tokens, cachedInput: tokens, cacheWrite: tokens, output: tokens, reasoning: tokens }),
      { nil: undefined },
    ),
    attempts: fc.array(
      fc.record({
        upstream: fc.constantFrom("east", "west"),
        cause: fc.constantFrom("upstream_timeout", "client_gone"),
        amount: fc.bigInt(1n, 9_000_000_000_000_000n).map(nanoUsd),
        memo: fc.constantFrom("{}", '{"input":1}'),
      }),
      { maxLength: 2 },
    ),
    leftUnpaid: fc.option(
      fc.record({
        allowance: fc.constantFrom(0n, 150n, 400n, 9_000_000_000_000_000n).map(nanoUsd),
        amount: amount.map((nano) => nanoUsd(nano + (nano < 200n ? 1n : 0n))),
        memo: fc.constant('{"paid":"allowance_used"}'),
        // For a settlement without costs; otherwise its own are used.
        costs,
      }),
      { nil: undefined },
    ),
    costs: fc.option(costs, { nil: undefined }),
    voided: fc.boolean(),
    model: fc.constantFrom("m1", "m2"),
    ageMs: fc.constantFrom(0, 1_000, 47 * HOUR_MS, 49 * HOUR_MS),
    idempotency,
    streamed: fc.boolean(),
    keepMs: fc.constantFrom(1, 60_000, HOUR_MS, DAY_MS),
  }),
  credit: fc.record({
    do: fc.constant("credit" as const),
    account,
    id: fc.constantFrom("p1", "p2", "p3", "p4", "p5", "p6"),
    amount: fc.oneof(
      amount,
      amount.map((a) => -a),
    ),
    kind: fc.constantFrom("topup" as const, "adjust" as const),
    again: fc.boolean(),
  }),
  grant: fc.record({
    do: fc.constant("grant" as const),
    account,
    id: fc.constantFrom("c1", "c2", "c3", "c4", "c5"),
    plan,
    group: fc.constantFrom("cards", "more"),
    lastsMs: fc.constantFrom(1_000, HOUR_MS, DAY_MS, 30 * DAY_MS),
    afterPrevious: fc.boolean(),
    quota: fc.option(amount, { nil: undefined }),
    gift: fc.constantFrom(undefined, true as const),
  }),
  createCodes: fc.record({
    do: fc.constant("createCodes" as const),
    account,
    codes: fc.uniqueArray(code, { minLength: 1, maxLength: 3 }),
    card: fc.constantFrom("day", "week"),
    plan,
    group: fc.constantFrom("cards", "more"),
    lastsMs: fc.constantFrom(1_000, HOUR_MS, DAY_MS, 30 * DAY_MS),
    starts: fc.constantFrom("at_redemption" as const, "after_previous" as const),
    quota: fc.option(amount, { nil: undefined }),
    endsInMs: fc.constantFrom(undefined, undefined, 1, HOUR_MS, DAY_MS),
    batch,
    label: fc.constantFrom(undefined, "spring", "fair ü"),
  }),
  redeem: fc.record({ do: fc.constant("redeem" as const), account, code, fromMs: replayedFromMs }),
  voidCode: fc.record({ do: fc.constant("voidCode" as const), account, code }),
  voidCodes: fc.record({ do: fc.constant("voidCodes" as const), account, codes: fc.array(code, { maxLength: 3 }) }),
  readBatch: fc.record({ do: fc.constant("readBatch" as const), account, batch, size: fc.integer({ min: 1, max: 3 }) }),
  keyGroup: fc.record({ do: fc.constant("keyGroup" as const), account, key, group }),
  keyState: fc.record({
    do: fc.constant("keyState" as const),
    replayedFromMs,
    account,
    key,
    change: fc.record(
      {
        name: fc.constantFrom("", "one", "Zwei ü"),
        status: fc.constantFrom("normal" as const, "suspended" as const),
        endsInMs: fc.constantFrom("never" as const, -1, 0, 1, HOUR_MS),
      },
      { requiredKeys: [] },
    ),
  }),
  rotate: fc.record({
    do: fc.constant("rotate" as const),
    account,
    key,
    value: fc.integer({ min: 0, max: 20 }),
    overlapMs: fc.constantFrom(0, 1, HOUR_MS),
    replayedFromMs,
  }),
  byOldValue: fc.record({
    do: fc.constant("byOldValue" as const),
    account,
    key,
    value: fc.integer({ min: 0, max: 20 }),
  }),
  keyLimits: fc.record({
    do: fc.constant("keyLimits" as const),
    replayedFromMs,
    account,
    key,
    which: fc.constantFrom("limits" as const, "caps" as const),
    limits: fc.option(limitSet, { nil: {} }),
  }),
  accountLimits: fc.record({
    do: fc.constant("accountLimits" as const),
    replayedFromMs,
    account,
    limits: fc.record(
      { budgets: fc.record({ day: budget, month: budget }, { requiredKeys: [] }) },
      { requiredKeys: [] },
    ),
  }),
  revoke: fc.record({ do: fc.constant("revoke" as const), account, key }),
  createKey: fc.record({ do: fc.constant("createKey" as const), account, key, group }),
  notify: fc.record({
    do: fc.constant("notify" as const),
    account,
    below: fc.option(amount.map(nanoUsd), { nil: undefined }),
    replayedFromMs,
  }),
  takeNotice: fc.record({ do: fc.constant("takeNotice" as const), account, seq: fc.integer({ min: 0, max: 6 }) }),
  plan: fc.record({ do: fc.constant("plan" as const), account, plan }),
  accountState: fc.record({
    do: fc.constant("accountState" as const),
    account,
    replayedFromMs,
    change: fc.record(
      {
        status: fc.constantFrom("normal" as const, "normal" as const, "suspended" as const),
        labels: fc.dictionary(fc.constantFrom("team", "1", "a.b", "__x"), fc.constantFrom("", "red", 'Zwei "ü" /'), {
          noNullPrototype: true,
        }),
      },
      { requiredKeys: [] },
    ),
  }),
  rename: fc.record({
    do: fc.constant("rename" as const),
    account,
    to: fc.constantFrom("one", "two", "three"),
    replayedFromMs,
  }),
  close: fc.record({ do: fc.constant("close" as const), account, replayedFromMs }),
  read: fc.record({ do: fc.constant("read" as const), account, key }),
  archive: fc.record({ do: fc.constant("archive" as const), account, through: fc.integer({ min: 1, max: 20 }) }),
  keepSignIn: fc.record({
    do: fc.constant("keepSignIn" as const),
    account,
    ...signIn,
    lastsMs: fc.constantFrom(undefined, undefined, 1, 60_000, HOUR_MS),
    data: fc.constantFrom("{}", '{"name":"Laptop ü 🔑"}', '"a\\nb"', '{"n":"-1 2 3"}'),
    // So many at once that the limit is reached.
    more: fc.constantFrom(0, 0, 0, 31, 33),
  }),
  takeSignIn: fc.record({ do: fc.constant("takeSignIn" as const), account, ...signIn }),
  dropSignIn: fc.record({
    do: fc.constant("dropSignIn" as const),
    account,
    ...signIn,
    keptFromMs: fc.constantFrom(undefined, -HOUR_MS, -1, 0, HOUR_MS),
  }),
  dropSignIns: fc.record({ do: fc.constant("dropSignIns" as const), account, kind: signIn.kind, operator }),
  jump: fc.record({
    do: fc.constant("jump" as const),
    byMs: fc.oneof(
      fc.integer({ min: 1, max: 120_000 }),
      fc.integer({ min: -120_000, max: -1 }),
      fc.constantFrom(
        -HOUR_MS,
        HOUR_MS,
        DAY_MS,
        48 * HOUR_MS,
        97 * HOUR_MS,
        -97 * HOUR_MS,
        400 * DAY_MS,
        -400 * DAY_MS,
      ),
    ),
  }),
};

export const anyOperation = fc.oneof(
  { weight: 24, arbitrary: operation.admit },
  { weight: 8, arbitrary: operation.extend },
  { weight: 10, arbitrary: operation.settle },
  { weight: 4, arbitrary: operation.jump },
  { weight: 3, arbitrary: operation.credit },
  { weight: 2, arbitrary: operation.grant },
  { weight: 2, arbitrary: operation.createCodes },
  { weight: 3, arbitrary: operation.redeem },
  { weight: 1, arbitrary: operation.voidCode },
  { weight: 1, arbitrary: operation.voidCodes },
  { weight: 2, arbitrary: operation.readBatch },
  { weight: 2, arbitrary: operation.keyGroup },
  { weight: 2, arbitrary: operation.keyState },
  { weight: 2, arbitrary: operation.rotate },
  { weight: 2, arbitrary: operation.byOldValue },
  { weight: 3, arbitrary: operation.keyLimits },
  { weight: 1, arbitrary: operation.accountLimits },
  { weight: 1, arbitrary: operation.createKey },
  { weight: 1, arbitrary: operation.notify },
  { weight: 1, arbitrary: operation.takeNotice },
  { weight: 1, arbitrary: operation.plan },
  { weight: 2, arbitrary: operation.accountState },
  { weight: 2, arbitrary: operation.rename },
  { weight: 1, arbitrary: operation.read },
  { weight: 1, arbitrary: operation.revoke },
  { weight: 0, arbitrary: operation.close },
  { weight: 3, arbitrary: operation.archive },
  { weight: 3, arbitrary: operation.keepSignIn },
  { weight: 1, arbitrary: operation.takeSignIn },
  { weight: 1, arbitrary: operation.dropSignIn },
  { weight: 1, arbitrary: operation.dropSignIns },
);

export type Operation = typeof anyOperation extends fc.Arbitrary<infer T> ? T : never;
