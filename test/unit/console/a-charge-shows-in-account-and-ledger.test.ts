import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { readKey } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { newRequestId } from "../../../src/values/request-id.ts";
import { startConsole } from "./running-console.ts";

test("a hold counts as held and cannot be adjusted away, and its charge is a ledger line with its figures", async (t) => {
  const { ask, store } = await startConsole(t);
  const account = (await ask("POST", "/admin/v1/accounts", { name: "alice" })).json;
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.00", id: "pay_1" });
  const made = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  const key = readKey(made.key);
  assert.ok(typeof key === "object");
  const requestId = newRequestId(Date.now(), randomBytes);
  const hold = nanoUsd(4_000_000_000n);
  const terms = { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrency: 100, perKey: false };
  const admitted = await store.admit({
    requestId,
    tag: key.tag,
    keyHash: key.hash,
    model: "big-1",
    address: "",
    plans: ["free"],
    groups: [{ group: "big", kind: "pay_per_use", holdFull: hold, holdMin: hold, ...terms }],
    inputTokens: 10,
    holdTtlMs: 60_000,
    again: false,
  });
  assert.ok(admitted.outcome === "admitted");

  const running = (await ask("GET", "/admin/v1/accounts/alice")).json;
  assert.equal(running.balance_usd, "10.00");
  assert.equal(running.held_usd, "4.00");
  assert.equal(running.available_usd, "6.00");
  const take = { usd: "-6.01", id: "adj_1", note: "more than is free" };
  assert.equal((await ask("POST", "/admin/v1/accounts/alice/adjustments", take)).status, 409);

  await store.settle({
    requestId,
    tag: key.tag,
    admittedAtMs: admitted.storeTimeMs,
    group: "big",
    kind: "pay_per_use",
    entitlement: undefined,
    keyId: admitted.keyId,
    perKey: false,
    model: "big-1",
    amount: nanoUsd(1_250_000_001n),
    absorbed: nanoUsd(0n),
    absorbedCause: undefined,
    upstream: "east",
    tokensTaken: 10,
    tokensUsed: 12,
    tokensPerMinute: undefined,
    voided: false,
    memo: '{"input":10,"output":2}',
  });
  const after = (await ask("GET", "/admin/v1/accounts/alice")).json;
  assert.equal(after.balance_usd, "8.749999999");
  assert.equal(after.held_usd, "0.00");
  assert.equal(after.spent_usd, "1.250000001");
  const line = (await ask("GET", "/admin/v1/accounts/alice/ledger?after=1")).json.items[0];
  assert.equal(line.kind, "usage");
  assert.equal(line.usd, "1.250000001");
  assert.equal(line.debit, account.id);
  assert.equal(line.credit, "revenue:big");
  assert.equal(line.model, "big-1");
  assert.equal(line.key, made.id);
  assert.deepEqual(line.usage, { input: 10, output: 2 });
  assert.equal(line.note, "");
});
