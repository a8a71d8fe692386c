/**
 * A key whose request is refused for lack of funds or by a limit is valid, and is remembered as good: it does not
 * compete for the lookups that an address with many bad keys has left (docs/failure-model.md row 30). A used-up budget
 * is reported. The client learns which limit it was, whose, and how long to wait.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { refusedBy } from "../../../src/admit/refused.ts";
import { NO_SEEN_KEYS, type SeenKeys } from "../../../src/admit/seen-keys.ts";
import type { AdmitRefused } from "../../../src/store/admission.ts";
import type { AccountTag, KeyHash, WellFormedKey } from "../../../src/values/key.ts";
import { printRequestId, type RequestId } from "../../../src/values/request-id.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const KEY = { tag: "tag" as AccountTag, hash: "hash" as KeyHash } as WellFormedKey;

/** What is remembered and reported after this refusal of the store. */
function noted(cause: AdmitRefused["cause"], more: Partial<AdmitRefused> = {}): readonly string[] {
  const events: string[] = [];
  const seenKeys: SeenKeys = {
    bad: () => undefined,
    wasGood: () => false,
    limited: () => undefined,
    noteBad: (hash, why) => void events.push(`${hash} is bad: ${why}`),
    noteGood: (hash) => void events.push(`${hash} is good`),
    noteLimited: (_hash, { cause: why }, bytes) =>
      void (why === "requests" && events.push(`its rate is known after ${bytes} bytes`)),
  };
  const onBudgetMet = (tag: AccountTag) => void events.push(`budget of ${tag}`);
  const limits = { requests: undefined, tokens: undefined };
  const answer: AdmitRefused = { outcome: "refused", cause, group: "money", retryAfterMs: undefined, limits, ...more };
  const parts = { seenKeys, wallMs: () => 0, onBudgetMet };
  const refused = refusedBy(
    answer,
    { key: KEY, protocol: "chat" },
    { model: MODEL.name, bodyBytes: 7 },
    CATALOG,
    parts,
  );
  assert.equal(refused.cause, cause);
  return events;
}

test("a key whose request is refused is remembered as good, whatever the cause", () => {
  for (const cause of ["insufficient_balance", "not_in_plan", "idempotency_key"] as const) {
    assert.deepEqual(noted(cause), ["hash is good"], cause);
  }
  assert.deepEqual(noted("requests"), ["hash is good", "its rate is known after 7 bytes"]);
  assert.deepEqual(noted("key_budget", { span: "day" }), ["hash is good", "budget of tag"]);
});

test("a refused key is not remembered as good, and only an unknown or revoked one is remembered as bad", () => {
  assert.deepEqual(noted("unknown_key"), ["hash is bad: unknown_key"]);
  assert.deepEqual(noted("revoked_key"), ["hash is bad: revoked_key"]);
  for (const cause of ["suspended", "expired_key", "address_not_allowed"] as const) assert.deepEqual(noted(cause), []);
});

/** What the client is answered. */
function answered(cause: AdmitRefused["cause"], more: Partial<AdmitRefused>) {
  const limits = { requests: undefined, tokens: undefined };
  const answer: AdmitRefused = { outcome: "refused", cause, group: "cards", retryAfterMs: undefined, limits, ...more };
  const parts = { seenKeys: NO_SEEN_KEYS, wallMs: () => 0 };
  const refused = refusedBy(
    answer,
    { key: KEY, protocol: "chat" },
    { model: MODEL.name, bodyBytes: 0 },
    CATALOG,
    parts,
  );
  return { detail: refused.facts.detail, retryAfterS: refused.retryAfterS };
}

test("a refusal names the figure of the limit and whether it is the key's or the account's, and the wait is rounded up", () => {
  assert.deepEqual(answered("requests", { retryAfterMs: 1_001 }), {
    detail: "The limit is 120 requests per minute.",
    retryAfterS: 2,
  });
  assert.equal(answered("tokens", { group: "double" }).detail, "The limit is 100000 tokens per minute.");
  assert.equal(answered("concurrency", {}).detail, "The limit is 4 requests at once.");
  assert.equal(answered("concurrency", { limitOfKey: 2 }).detail, "The limit of this key is 2 requests at once.");
  assert.equal(answered("requests", { limitOfKey: 1 }).detail, "The limit of this key is 1 request per minute.");
  assert.equal(
    answered("concurrency", { limitOfAccount: 1_000 }).detail,
    "The limit of an account is 1000 requests at once.",
  );
});

test("a refusal over an idempotency key names the request that used it, and whether that was another request", () => {
  const first = "0".repeat(32) as RequestId;
  const id = printRequestId(first);
  assert.equal(answered("idempotency_key", { first }).detail, `Request ${id} used this key with another path or body.`);
  assert.equal(answered("idempotency_in_progress", { first }).detail, `The first request with this key is ${id}.`);
});
