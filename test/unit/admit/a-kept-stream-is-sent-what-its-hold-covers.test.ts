/**
 * A stream without an output limit whose upstream keeps the reply (docs/decisions/stateful-upstreams-get-wrapped-ids.md): its limit
 * is what the store has held for it, whatever the store answers to the raise.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { type TestContext } from "node:test";
import { type AdmitInput, admit } from "../../../src/admit/admit.ts";
import type { Permit } from "../../../src/admit/permit.ts";
import { NO_SEEN_KEYS } from "../../../src/admit/seen-keys.ts";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import type { ExtendAnswer, ExtendAsk } from "../../../src/store/extension.ts";
import type { Catalog } from "../../../src/values/catalog.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { newAccountTag, newKey, readKey } from "../../../src/values/key.ts";
import type { Envelope } from "../../../src/values/members/envelope.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { newRequestId } from "../../../src/values/request-id.ts";
import { settingsOf, testConfig } from "../../rig/gateway.ts";
import { openTestStore } from "../console/test-store.ts";

const DEFAULT_OUTPUT = 100;

/** The catalog with the model at these upstreams, of which `up-responses` keeps replies. */
function catalogOf(routes: readonly { readonly upstream: string }[]): Catalog {
  const change = () => ({
    upstreams: { "up-responses": { stateful: true } },
    models: { "responses-1": { default_output_tokens: DEFAULT_OUTPUT, routes } },
  });
  return settingsOf(testConfig({ upstreamUrl: "http://127.0.0.1:1", dir: "/nowhere" }, change)).catalog;
}

const KEEPING = catalogOf([{ upstream: "up-responses" }]);
const FACTS: Envelope = {
  ...{ protocol: "responses", model: "responses-1", stream: true, limit: undefined, keepsReply: true, choices: 1 },
  ...{ bodyBytes: 300, textBytes: 300, textTokens: 0, media: [], compacts: false, thinkingBudget: 0 },
  ...{ serviceTier: undefined, tierParam: undefined, hostedTools: [], demandedTools: [], options: [] },
  ...{ hasOwnTools: true, includeUsage: false },
};

type Raise = (ask: ExtendAsk, store: Store) => Promise<ExtendAnswer>;

/** Admits the stream. `raise` is the answer of the store to the raise; by default its own. */
async function admitted(
  t: TestContext,
  raise?: Raise,
  facts: Partial<Envelope> = {},
  { balance = 1_000_000_000n, catalog = KEEPING } = {},
): Promise<{ permit: Permit; held: bigint }> {
  const store = await openTestStore(t);
  const tag = newAccountTag(randomBytes);
  const key = newKey(tag, randomBytes);
  await store.createAccount({ tag, name: "keeps", plan: "free" });
  await store.createKey(tag, { id: key.id, hash: key.hash, group: "money" });
  await store.credit(tag, { id: "pay", amount: balance, kind: "topup", note: "" });
  const presented = readKey(key.text);
  assert.ok(typeof presented === "object");
  const input: AdmitInput = {
    ...{ requestId: newRequestId(Date.now(), randomBytes), protocol: "responses", key: presented, address: "" },
    ...{ facts: { ...FACTS, ...facts }, holdTtlMs: 60_000, idempotency: undefined },
  };
  const permit = await admit(input, {
    catalog: () => catalog,
    unsettled: () => undefined,
    wallMs: Date.now,
    seenKeys: NO_SEEN_KEYS,
    abandon: () => assert.fail("the admission is not abandoned"),
    store: {
      admit: store.admit.bind(store),
      readKey: store.readKey.bind(store),
      extend: (ask) => (raise ? raise(ask, store) : store.extend(ask)),
    },
  });
  assert.ok(!isRefusal(permit));
  return { permit, held: (await store.getAccount(tag))?.held ?? 0n };
}

test("the hold covers all that the model can write, and does not grow any more", async (t) => {
  const { permit, held } = await admitted(t);
  assert.equal(permit.outputLimit, permit.model.maxOutputTokens);
  assert.deepEqual([permit.hold, permit.growth, permit.clamped], [held, undefined, undefined]);
});

/** Nano-USD of all that the model can write. */
const WHOLE_OUTPUT = 320_000_000n;

test("no more is held than the whole output costs, however much is free", async (t) => {
  let before = 0n;
  const { permit } = await admitted(t, async (ask, store) => {
    before = (await store.getAccount(ask.tag))?.held ?? 0n;
    return store.extend(ask);
  });
  const first = 10_000n * BigInt(DEFAULT_OUTPUT);
  assert.equal(permit.hold, before - first + WHOLE_OUTPUT);
});

test("on a small balance the hold is raised by half of what is free, which leaves the rest to other streams", async (t) => {
  const balance = 200_000_000n;
  let before = 0n;
  const raise: Raise = async (ask, store) => {
    before = (await store.getAccount(ask.tag))?.held ?? 0n;
    return store.extend(ask);
  };
  const { permit, held } = await admitted(t, raise, {}, { balance });
  assert.ok(before > 0n);
  assert.deepEqual([permit.hold, held], [before + (balance - before) / 2n, permit.hold]);
});

test("one upstream of several that keeps replies is enough", async (t) => {
  const catalog = catalogOf([{ upstream: "up-responses" }, { upstream: "up-chat" }]);
  const { permit } = await admitted(t, undefined, {}, { catalog });
  assert.equal(permit.outputLimit, permit.model.maxOutputTokens);
  assert.equal(permit.growth, undefined);
});

for (const [title, raise] of [
  ["gives no answer", async () => Promise.reject(new StoreError("unavailable", "no reply"))],
  ["does not know the hold any more", async () => ({ outcome: "gone" })],
  ["has nothing free any more", (ask, store) => store.extend({ ...ask, target: nanoUsd(1n) })],
] as readonly (readonly [string, Raise])[]) {
  test(`a store that ${title}: the limit is what the first hold covers`, async (t) => {
    const { permit } = await admitted(t, raise);
    assert.equal(permit.outputLimit, DEFAULT_OUTPUT);
    assert.equal(permit.growth, undefined);
    assert.equal(permit.clamped, `max_output_tokens=${DEFAULT_OUTPUT}`);
  });
}

for (const [title, facts] of [
  ["that sets a limit", { limit: { field: "max_output_tokens", value: 50 } }],
  ["that is not to be kept", { keepsReply: false }],
  ["of a whole reply", { stream: false }],
] as const) {
  test(`a request ${title} asks for no raise`, async (t) => {
    await admitted(t, () => assert.fail("the hold is not raised"), facts);
  });
}
