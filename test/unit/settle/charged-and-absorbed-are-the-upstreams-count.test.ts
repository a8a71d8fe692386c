/**
 * ARCHITECTURE.md promises 3 and 15 as a property, through the arithmetic and a real store. For whatever an upstream does and however
 * its stream ends, once its final count was seen: charged and absorbed amounts add up to that count at the route's prices, the
 * client is never charged for more, there is no charge without a reason, and neither balance nor holds fall below zero. Without
 * a final count, and when the upstream or the gateway cut the stream, the charge stays within the hold. Row 64 of
 * docs/failure-model.md.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import fc from "fast-check";
import { measure, type OfferedTerms, type Quote } from "../../../src/admit/terms.ts";
import { settlementOf } from "../../../src/settle/charge.ts";
import type { Ending } from "../../../src/settle/meter.ts";
import type { ChargeTerms } from "../../../src/store/charge-terms.ts";
import type { Store } from "../../../src/store/contract.ts";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import { openStore } from "../../../src/store/open.ts";
import { type AccountTag, hashKey } from "../../../src/values/key.ts";
import { NANO_USD_MAX, nanoUsd } from "../../../src/values/money.ts";
import { charge, type Multiplier } from "../../../src/values/price.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { TOKEN_COUNT_MAX, totalInput, type Usage } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import { makeAccount } from "../../rig/gateway.ts";

const dir = mkdtempSync(join(tmpdir(), "tollgate-bill-"));
let store: Store;
before(async () => {
  store = await openStore({ kind: "embedded", dir });
});
after(async () => {
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

const count = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 5_000 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 1_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: TOKEN_COUNT_MAX }) },
);
const usage: fc.Arbitrary<Usage> = fc.record({
  input: count,
  cachedInput: count,
  cacheWrite: count,
  cacheWrite1h: count,
  output: count,
  reasoning: fc.constant(0),
  toolCalls: fc.constant({}),
});
const produced = fc
  .record({ tokens: fc.integer({ min: 0, max: 20_000 }), bytesPerToken: fc.integer({ min: 1, max: 5 }) })
  .chain(({ tokens, bytesPerToken }) =>
    fc.record({
      tokens: fc.constant(tokens),
      bytes: fc.constant(tokens * bytesPerToken),
      deltas: fc.integer({ min: 0, max: tokens }),
    }),
  );
const behavior = fc.record({
  usage: fc.option(usage, { nil: undefined, freq: 6 }),
  final: fc.boolean(),
  produced,
  silentMs: fc.integer({ min: 0, max: 300_000 }),
  thinks: fc.constantFrom("yes", "unknown", "no"),
  hiddenPerS: fc.integer({ min: 0, max: 2_000 }),
  delivered: fc.boolean(),
  ending: fc.constantFrom("complete", "client_gone", "brake", "draining", "internal", "orphaned", "upstream_invalid"),
  leftAllowance: fc.constantFrom(undefined, 0n, 0n, 1_000n, 100_000_000n),
  limit: fc.integer({ min: 1, max: MODEL.maxOutputTokens }),
  textBytes: fc.integer({ min: 1, max: 50_000 }),
  /** Funds of the account beside the hold, in percent of the hold. */
  free: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 100_000 })),
  group: fc.constantFrom("money", "double"),
});

/** Ends for which the count is charged even if it is above the hold. */
const ENDED_BY_CLIENT: ReadonlySet<string> = new Set(["complete", "client_gone"]);

let seq = 0;

test("whatever an upstream does, charged and absorbed amounts add up to its final count, and no client pays more", async () => {
  let counted = 0;
  let beyond = 0;
  let cut = 0;
  let left = 0;
  await fc.assert(
    fc.asyncProperty(behavior, async (now) => {
      const group = CATALOG.groups.get(now.group);
      assert.ok(group);
      const { terms, groups } = measure(factsOf(now.limit, now.textBytes), MODEL, CATALOG) as Quote;
      const offered = groups.find((one) => one.group === now.group) as OfferedTerms;
      const hold = offered.holdFull;
      const account = await makeAccount(store, { usd: "0", group: now.group });
      const funds = hold + (hold * BigInt(now.free)) / 100n;
      await store.credit(account.tag, { id: `f-${account.tag}`, amount: nanoUsd(funds), kind: "topup", note: "" });
      const chargeTerms = await admitted(account, { terms, groups }, now.limit);
      assert.equal(chargeTerms.hold, hold);
      const ending = endingOf(now);
      const { ask, metered } = settlementOf(chargeTerms, ending);
      // A disconnect is never charged to a card without a quota, nor when a drain cut the stream.
      assert.equal(settlementOf({ ...chargeTerms, unmetered: true }, ending).ask.leftUnpaid, undefined);
      assert.equal(settlementOf(chargeTerms, { ...ending, leftAllowance: undefined }).ask.leftUnpaid, undefined);
      assert.equal((await store.settle(ask)).outcome, "settled");

      const lines = (await store.readLedger(account.tag, 0, 10)).filter(({ kind }) => kind !== "topup");
      const sumOf = (kind: string) =>
        lines.filter((line) => line.kind === kind).reduce((sum, { amount }) => sum + amount, 0n);
      const [charged, absorbed] = [sumOf("usage"), sumOf("absorbed")];
      const state = await store.inspect(account.tag);
      assert.deepEqual([state?.account.balance, state?.account.held], [funds - charged, 0n]);
      assert.ok(funds - charged >= 0n);
      const { findings } = await auditToEnd(auditAccount(store, account));
      assert.deepEqual(findings, []);
      const pays = lines.some(({ kind }) => kind === "usage");
      const asksAllowance = now.ending === "client_gone" && now.leftAllowance !== undefined;
      assert.ok(pays === now.delivered || (pays && asksAllowance), "without a delivery only the allowance is charged");
      if (pays && !now.delivered) left++;
      if (!pays && asksAllowance) assert.ok(absorbed <= (now.leftAllowance ?? 0n) || group.multiplier === 0n);
      if (now.usage && now.final && countsBothSides(now.usage, now.produced.tokens)) {
        counted++;
        const price = (multiplier: bigint) => charge(MODEL.price, multiplier as Multiplier, now.usage as Usage).amount;
        const owed = pays ? price(group.multiplier) : price(1_000_000n);
        assert.ok(charged <= owed, `charged ${charged} for ${owed}`);
        assert.equal(charged + absorbed, owed);
        assert.ok(owed <= NANO_USD_MAX);
        if (charged > hold) beyond++;
        if (!ENDED_BY_CLIENT.has(now.ending)) {
          assert.ok(charged <= hold, `${charged} for the interrupted reply`);
          if (pays && owed > hold) cut++;
        }
        assert.equal(metered?.counted, "upstream");
      } else assert.ok(charged <= hold, `an estimate of ${charged} above the hold of ${hold}`);
    }),
    { numRuns: 400 },
  );
  assert.ok(
    counted > 100 && beyond > 2 && cut > 2,
    `${counted} counted, ${beyond} above their hold, ${cut} cut at the hold`,
  );
  assert.ok(left > 0, `${left} clients were charged for requests that they left before any output`);
});

/**
 * A count that lacks a side (no input at all, or no output for text that was seen) is an estimate (docs/usage-forms.md,
 * docs/translation-rules.md rule 5).
 */
function countsBothSides(usage: Usage, producedTokens: number): boolean {
  return totalInput(usage) > 0 && (usage.output > 0 || producedTokens === 0);
}

function factsOf(limit: number, textBytes: number) {
  return {
    protocol: "chat",
    model: MODEL.name,
    stream: true,
    limit: { field: "max_tokens", value: limit },
    choices: 1,
    bodyBytes: textBytes,
    textBytes,
    media: [],
    compacts: false,
    serviceTier: undefined,
    tierParam: undefined,
    hostedTools: [],
    demandedTools: [],
    hasOwnTools: true,
    options: [],
    thinkingBudget: 0,
    textTokens: 0,
    includeUsage: false,
  } as const;
}

async function admitted(
  account: { readonly tag: AccountTag; readonly keyId: string; readonly key: string },
  { terms, groups }: Quote,
  outputMost: number,
): Promise<ChargeTerms> {
  const requestId = `r${seq++}` as RequestId;
  const answer = await store.admit({
    requestId,
    tag: account.tag,
    keyHash: hashKey(account.key),
    model: terms.model.name,
    address: "",
    plans: terms.plans,
    groups,
    inputTokens: terms.inputTokens,
    holdTtlMs: 60_000,
    again: false,
  });
  assert.equal(answer.outcome, "admitted");
  assert.ok(answer.outcome === "admitted");
  const group = CATALOG.groups.get(answer.group);
  assert.ok(group);
  return {
    requestId,
    tag: account.tag,
    keyId: account.keyId,
    group,
    model: MODEL,
    tokensTaken: terms.inputTokens,
    terms,
    hold: answer.hold,
    outputMost,
    entitlement: undefined,
    unmetered: false,
    storeTimeMs: answer.storeTimeMs,
    catalogVersion: "1",
  };
}

type Behavior = typeof behavior extends fc.Arbitrary<infer T> ? T : never;

function endingOf(now: Behavior): Ending {
  return {
    delivered: now.delivered,
    complete: now.ending === "complete",
    route: MODEL.routes[0],
    cause: now.ending,
    leftAllowance: now.leftAllowance === undefined ? undefined : nanoUsd(now.leftAllowance),
    measured: { usage: now.usage, final: now.final, produced: now.produced, silentMs: now.silentMs },
    pace: { thinks: now.thinks, hiddenPerS: now.hiddenPerS, visibleFactor: 1 },
  };
}
