/**
 * docs/failure-model.md row B5: the store may have carried out an admission whose answer was lost. The hold and the
 * idempotency key that it took are released.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { type AdmitInput, type AdmitParts, admit } from "../../../src/admit/admit.ts";
import { NO_SEEN_KEYS } from "../../../src/admit/seen-keys.ts";
import { abandoned } from "../../../src/settle/lines.ts";
import { StoreError } from "../../../src/store/contract.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { idempotentRequest } from "../../../src/values/idempotency.ts";
import { newAccountTag, newKey, readKey } from "../../../src/values/key.ts";
import { newRequestId } from "../../../src/values/request-id.ts";
import { settingsOf, testConfig } from "../../rig/gateway.ts";
import { openTestStore } from "../console/test-store.ts";

test("an admission whose answer is lost is a 503, and settling it frees the hold and the idempotency key", async (t) => {
  const store = await openTestStore(t);
  const tag = newAccountTag(randomBytes);
  const key = newKey(tag, randomBytes);
  await store.createAccount({ tag, name: "lost", plan: "free" });
  await store.createKey(tag, { id: key.id, hash: key.hash, group: "money" });
  await store.credit(tag, { id: "pay", amount: 1_000_000_000n, kind: "topup", note: "" });
  const presented = readKey(key.text);
  assert.ok(typeof presented === "object");
  const { catalog } = settingsOf(testConfig({ upstreamUrl: "http://127.0.0.1:1", dir: "/nowhere" }));
  const facts = {
    protocol: "chat",
    model: "chat-1",
    stream: false,
    limit: { field: "max_tokens", value: 100 },
    choices: 1,
    bodyBytes: 300,
    textBytes: 300,
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
  const request = idempotentRequest("order-1", "/v1/chat/completions", Buffer.from("{}"));
  const input: AdmitInput = {
    requestId: newRequestId(Date.now(), randomBytes),
    protocol: "chat",
    key: presented,
    address: "",
    facts,
    holdTtlMs: 60_000,
    idempotency: { ...request, streamed: false, keepMs: 60_000 },
  };
  const given: Parameters<typeof abandoned>[] = [];
  const parts = {
    catalog: () => catalog,
    unsettled: () => undefined,
    wallMs: Date.now,
    seenKeys: NO_SEEN_KEYS,
    abandon: (...[id, of, tokens, idempotency]: Parameters<AdmitParts["abandon"]>) => {
      given.push([id, of, tokens, Date.now(), idempotency]);
    },
  };
  const lost = {
    readKey: store.readKey.bind(store),
    extend: store.extend.bind(store),
    async admit(ask: Parameters<typeof store.admit>[0]): Promise<never> {
      assert.equal((await store.admit(ask)).outcome, "admitted");
      throw new StoreError("unavailable", "no reply");
    },
  };
  const refused = await admit(input, { ...parts, store: lost });
  assert.ok(isRefusal(refused));
  assert.equal(refused.cause, "store_unavailable");
  assert.equal((await store.inspect(tag))?.idempotency[0]?.state, "running");

  assert.equal(given.length, 1);
  await store.settle(abandoned(...(given[0] as Parameters<typeof abandoned>)));
  const state = await store.inspect(tag);
  assert.deepEqual([state?.idempotency, state?.holds, state?.account.held], [[], [], 0n]);
  const again = await admit({ ...input, requestId: newRequestId(Date.now(), randomBytes) }, { ...parts, store });
  assert.ok(!isRefusal(again));
});
