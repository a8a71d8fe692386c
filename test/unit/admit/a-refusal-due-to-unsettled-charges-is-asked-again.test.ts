/**
 * ARCHITECTURE.md promise 5: a refusal that the account's own last request may have caused is asked once more, after
 * the charges that this process has not settled yet. If the store holds nothing, there is nothing to release.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type AdmitInput, admit } from "../../../src/admit/admit.ts";
import { NO_SEEN_KEYS } from "../../../src/admit/seen-keys.ts";
import type { AdmitAsk, AdmitRefusalCause } from "../../../src/store/admission.ts";
import { StoreError } from "../../../src/store/contract.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { newAccountTag, newKey, readKey } from "../../../src/values/key.ts";
import type { Envelope } from "../../../src/values/members/envelope.ts";
import { newRequestId } from "../../../src/values/request-id.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const FACTS: Envelope = {
  ...{
    protocol: "chat",
    model: MODEL.name,
    stream: false,
    choices: 1,
    bodyBytes: 300,
    textBytes: 300,
    textTokens: 0,
    media: [],
  },
  ...{ limit: { field: "max_tokens", value: 100 }, thinkingBudget: 0, compacts: false, includeUsage: false },
  ...{ serviceTier: undefined, tierParam: undefined, hostedTools: [], demandedTools: [], options: [] },
  hasOwnTools: true,
};

/**
 * Asks a store that always gives this answer, or gives `then` the second time.
 * @returns what the store was asked, and how many admissions were abandoned.
 */
async function asked(
  answer: AdmitRefusalCause | StoreError,
  { isPending, then = answer }: { readonly isPending: boolean; readonly then?: StoreError | AdmitRefusalCause },
) {
  const key = readKey(newKey(newAccountTag(randomBytes), randomBytes).text);
  assert.ok(typeof key === "object");
  const asks: AdmitAsk[] = [];
  let isSettled = false;
  const settle = async () => {
    await turn();
    isSettled = true;
  };
  let abandoned = 0;
  const input: AdmitInput = {
    ...{ requestId: newRequestId(Date.now(), randomBytes), protocol: "chat", key, address: "", facts: FACTS },
    ...{ holdTtlMs: 60_000, idempotency: undefined },
  };
  const refused = await admit(input, {
    catalog: () => CATALOG,
    wallMs: () => 0,
    seenKeys: NO_SEEN_KEYS,
    abandon: () => void abandoned++,
    unsettled: () => (isPending ? settle() : undefined),
    store: {
      readKey: async () => undefined,
      extend: async () => ({ outcome: "gone" }),
      async admit(ask) {
        assert.equal(isSettled, asks.length === 1, "the charge is settled before the second attempt");
        asks.push(ask);
        const now = asks.length === 1 ? answer : then;
        if (now instanceof StoreError) throw now;
        const limits = { requests: undefined, tokens: undefined };
        return { outcome: "refused", cause: now, group: "money", retryAfterMs: undefined, limits };
      },
    },
  });
  assert.ok(isRefusal(refused));
  return { again: asks.map((ask) => ask.again), fresh: asks.map((ask) => ask.fresh), abandoned };
}

test("a refusal that the last request may have caused is asked once more, and the request bucket is charged once", async () => {
  const causes = [
    "insufficient_balance",
    "quota_used",
    "key_budget",
    "account_budget",
    "idempotency_in_progress",
    "idempotency_key",
  ] as const;
  for (const cause of causes) {
    assert.deepEqual((await asked(cause, { isPending: true })).again, [false, false], cause);
    assert.deepEqual((await asked(cause, { isPending: false })).again, [false], cause);
  }
  // The only one of these causes that the store checks after it has charged the bucket.
  assert.deepEqual((await asked("concurrency", { isPending: true })).again, [false, true]);
});

test("a refusal that the last request cannot have caused is not asked again", async () => {
  for (const cause of ["unknown_key", "not_in_plan", "no_entitlement", "requests", "tokens"] as const) {
    assert.deepEqual((await asked(cause, { isPending: true })).again, [false], cause);
  }
});

test("an admission without an answer is abandoned, unless the store was not asked or refuses to work until its operator acts", async () => {
  const abandonedFor = async (error: StoreError) => (await asked(error, { isPending: false })).abandoned;
  assert.equal(await abandonedFor(new StoreError("unavailable", "no reply")), 1);
  assert.equal(await abandonedFor(new StoreError("unavailable", "not connected", { outcome: "unsent" })), 0);
  assert.equal(await abandonedFor(new StoreError("older", "the store lost data")), 0);
});

test("an admission whose second ask gets no answer is abandoned, once", async () => {
  const abandonedFor = async (then: StoreError) => {
    const { again, abandoned } = await asked("insufficient_balance", { isPending: true, then });
    return [again.length, abandoned];
  };
  assert.deepEqual(await abandonedFor(new StoreError("unavailable", "no reply")), [2, 1]);
  assert.deepEqual(await abandonedFor(new StoreError("unavailable", "not connected", { outcome: "unsent" })), [2, 0]);
  assert.deepEqual(await abandonedFor(new StoreError("older", "the store lost data")), [2, 0]);
});

test("only the first ask with an id says that the store cannot know the id", async () => {
  for (const cause of ["insufficient_balance", "concurrency"] as const) {
    assert.deepEqual((await asked(cause, { isPending: true })).fresh, [true, false], cause);
  }
});
