/**
 * `foresee` predicts from what it reads, and the store decides: on any account, including cards and holds, both come to
 * the same result.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import fc from "fast-check";
import { foresee } from "../../../../src/endpoints/explain/explain.ts";
import type { GroupTerms } from "../../../../src/store/admission.ts";
import { limitScope } from "../../../../src/store/names.ts";
import { newAccountTag, newKey } from "../../../../src/values/key.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { newRequestId } from "../../../../src/values/request-id.ts";
import { openStandingStore } from "../../../unit/console/test-store.ts";
import { admitted, settleAsk } from "../../../unit/store/asks.ts";

const plan = fc.constantFrom("free", "pro", "max");
const group = fc.constantFrom("money", "cards", "days");
/** Small, so that available and required amounts are often equal. */
const amount = fc.bigInt({ min: 0n, max: 8n });
const card = fc.record({
  plan,
  group: fc.constantFrom("cards", "days"),
  quota: fc.option(amount, { nil: undefined }),
  lastsMs: fc.integer({ min: 60_000, max: 90_000_000 }),
  afterPrevious: fc.boolean(),
});
const request = fc.record({
  plans: fc.uniqueArray(plan, { maxLength: 3 }),
  serving: fc.uniqueArray(group, { maxLength: 3 }),
  holdMin: amount,
  more: amount,
  inputTokens: fc.integer({ min: 0, max: 40 }),
});
const limits = fc.record({
  requestsPerMinute: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined, freq: 2 }),
  tokensPerMinute: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined, freq: 2 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  perKey: fc.boolean(),
});
const account = fc.record({
  plan,
  group,
  funds: amount,
  cards: fc.array(card, { maxLength: 4 }),
  limits,
  requests: fc.array(request, { minLength: 1, maxLength: 8 }),
});

/** Random cases seldom reach a limit: here the second request reaches each of them. */
const LIMITED = (
  [
    { requestsPerMinute: 1, tokensPerMinute: undefined, concurrency: 4, perKey: false },
    { requestsPerMinute: undefined, tokensPerMinute: 40, concurrency: 4, perKey: true },
    { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrency: 1, perKey: false },
  ] as const
).map((one) => {
  const asked = { plans: ["free" as const], serving: ["money" as const], holdMin: 0n, more: 1n, inputTokens: 30 };
  const whose = { plan: "free" as const, group: "money" as const, funds: 8n, cards: [] };
  return [{ ...whose, limits: one, requests: [asked, asked] }] as [
    typeof account extends fc.Arbitrary<infer T> ? T : never,
  ];
});

type Limits = Pick<GroupTerms, "requestsPerMinute" | "tokensPerMinute" | "concurrency" | "perKey">;

function termsOf(name: string, holdMin: bigint, more: bigint, limited: Limits): GroupTerms {
  return {
    group: name,
    kind: name === "money" ? "pay_per_use" : "time_card",
    holdMin: nanoUsd(holdMin),
    holdFull: nanoUsd(holdMin + more),
    ...limited,
  };
}

test("prediction and store give the same answer, payer and hold, one request after another, with the holds of the earlier ones", async (t) => {
  // The store's clock does not move, so that reads and decisions see the same time.
  const store = await openStandingStore(t);
  const causes = new Set<string>();
  await fc.assert(
    fc.asyncProperty(account, async (one) => {
      const tag = newAccountTag(randomBytes);
      const key = newKey(tag, randomBytes);
      await store.createAccount({ tag, name: `a-${tag}`, plan: one.plan });
      await store.createKey(tag, { id: key.id, hash: key.hash, group: one.group });
      if (one.funds > 0n) await store.credit(tag, { id: "pay", amount: one.funds, kind: "topup", note: "" });
      for (const [index, { quota, ...facts }] of one.cards.entries()) {
        const id = `code_${index}`;
        const worth = quota === undefined ? undefined : nanoUsd(quota);
        await store.grant(tag, { id, card: "c", reference: id, quota: worth, ...facts });
      }
      for (const { plans, serving, holdMin, more, inputTokens } of one.requests) {
        const groups = serving.map((name) => termsOf(name, holdMin, more, one.limits));
        const view = await store.readKey(tag, key.hash);
        const held = (await store.getAccount(tag))?.held;
        assert.ok(view && held !== undefined);
        const limits = await store.readLimits(tag, limitScope(one.group, key.id, one.limits.perKey));
        assert.ok(limits);
        const foreseen = foresee({ view, held, limits }, { plans, groups, inputTokens, model: "m" });
        const decided = await store.admit({
          requestId: newRequestId(Date.now(), randomBytes),
          tag,
          keyHash: key.hash,
          model: "m",
          address: "",
          plans,
          groups,
          inputTokens,
          holdTtlMs: 600_000,
          again: false,
        });
        const facts = (answer: object) => ({ ...answer, storeTimeMs: 0 });
        assert.deepEqual(facts(foreseen), facts(decided));
        causes.add(decided.outcome === "refused" ? decided.cause : `admitted ${decided.unmetered}`);
      }
    }),
    { numRuns: 300, examples: LIMITED },
  );
  assert.deepEqual(
    [...causes].sort(),
    [
      "admitted false",
      "admitted true",
      "concurrency",
      "group_mismatch",
      "insufficient_balance",
      "no_entitlement",
      "not_in_plan",
      "quota_used",
      "requests",
      "tokens",
    ],
    "every answer has occurred",
  );
});

test("for an account whose charges exceeded its funds the prediction uses the highest possible cost, too", async (t) => {
  const store = await openStandingStore(t);
  const tag = newAccountTag(randomBytes);
  const { id, hash } = newKey(tag, randomBytes);
  await store.createAccount({ tag, name: "dear", plan: "pro" });
  await store.createKey(tag, { id, hash, group: "money" });
  const unlimited = { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrency: 9, perKey: false };
  const worstCase = { holdMin: nanoUsd(10n), holdFull: nanoUsd(400n) };
  const groups = [{ ...termsOf("money", 10n, 90n, unlimited), worstCase }];
  const admit = async (funds: bigint) => {
    const requestId = newRequestId(Date.now(), randomBytes);
    await store.credit(tag, { id: requestId, amount: nanoUsd(funds), kind: "topup", note: "" });
    const view = await store.readKey(tag, hash);
    const held = (await store.getAccount(tag))?.held;
    assert.ok(view && held !== undefined);
    const limits = await store.readLimits(tag, limitScope("money", id, false));
    const asked = { plans: ["pro"], groups, inputTokens: 1, model: "big-1" };
    const foreseen = foresee({ view, held, limits }, asked);
    const permit = await store.admit({
      ...{ ...asked, address: "", requestId, tag, keyHash: hash, holdTtlMs: 600_000, again: false },
    });
    assert.deepEqual({ ...foreseen, storeTimeMs: 0 }, { ...permit, storeTimeMs: 0 });
    const { hold, worstCase } = admitted(permit);
    await store.settle(settleAsk({ requestId, tag, groups }, admitted(permit), { amount: 200n }));
    return [hold, worstCase];
  };
  for (let i = 0; i < 3; i++) assert.deepEqual(await admit(100n), [100n, undefined]);
  assert.deepEqual(await admit(500n), [400n, true]);
});
