/** How far a hold grows, and that it grows once. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { SWEEP_MAX } from "../../../src/store/settlement.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { admitAsk, admitted, cardTerms, DAY_MS, hashOf, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";
import type { Ask } from "./contract.ts";
import { assertIdentities } from "./contract-settle.ts";

const raise = (store: Store, tag: AccountTag, rid: number, target: bigint) =>
  store.extend({ tag, requestId: ridOf(rid), target: nanoUsd(target) });

async function stateOf(store: Store, tag: AccountTag) {
  const state = await store.inspect(tag);
  assert.ok(state);
  assertIdentities(state);
  return state;
}

export function extensionTests(ask: Ask): void {
  test("a hold is raised to its target once, however often that is requested (invariant 3)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Xonce");
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(1) })));
    const before = (await stateOf(store, tag)).holds[0];
    for (let time = 0; time < 3; time++) {
      assert.deepEqual(await raise(store, tag, 1, 250n), { outcome: "held", hold: 250n });
    }
    assert.deepEqual(await raise(store, tag, 1, 50n), { outcome: "held", hold: 250n }, "a hold never shrinks");
    const { holds, account, inFlight } = await stateOf(store, tag);
    assert.deepEqual(holds, [{ ...before, amount: 250n }]);
    assert.deepEqual([account.held, inFlight], [250n, 1]);
  });

  test("a hold takes only what is free beside all other holds (promise 1)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Xfree", { funds: 350n });
    for (const rid of [1, 2]) admitted(await store.admit(admitAsk({ tag, requestId: ridOf(rid) })));
    assert.deepEqual(await raise(store, tag, 1, 200n), { outcome: "held", hold: 200n });
    assert.deepEqual(await raise(store, tag, 2, 200n), { outcome: "held", hold: 150n });
    assert.deepEqual(await raise(store, tag, 1, 300n), { outcome: "held", hold: 200n });
    const { account } = await stateOf(store, tag);
    assert.deepEqual([account.balance, account.held], [350n, 350n]);
    await store.credit(tag, { id: "more", amount: 40n, kind: "topup", note: "" });
    assert.deepEqual(await raise(store, tag, 1, 300n), { outcome: "held", hold: 240n }, "a top-up counts at once");
  });

  test("a request whose key or account is suspended or revoked keeps its hold, and gets no extension until it is resumed", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Xshut", { funds: 10_000n });
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(1) })));
    const key = "key_Xshut";
    const grown = async (target: bigint) => {
      const answer = await raise(store, tag, 1, target);
      return answer.outcome === "held" ? answer.hold : answer.outcome;
    };
    assert.equal(await grown(200n), 200n);
    await store.changeKey(tag, key, { status: "suspended" });
    assert.equal(await grown(300n), 200n);
    await store.changeKey(tag, key, { status: "normal" });
    assert.equal(await grown(300n), 300n);
    await store.changeAccount(tag, { status: "suspended" });
    assert.equal(await grown(400n), 300n);
    await store.changeAccount(tag, { status: "normal" });
    assert.equal(await grown(400n), 400n);
    await store.rotateKey(tag, key, { hash: hashOf("Xshut-next"), overlapMs: 0 });
    assert.equal(await grown(500n), 500n, "a rotated key is the same key");
    await store.revokeKey(tag, key);
    assert.equal(await grown(600n), 500n);
    assert.equal((await stateOf(store, tag)).account.held, 500n);
  });

  test("fifty extensions at once share what is free to the nano-dollar (promise 1)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Xmany", { funds: 1_000n });
    const groups = [terms({ holdFull: 10n, holdMin: 10n })];
    const rids = Array.from({ length: 50 }, (_, index) => index + 1);
    for (const rid of rids) admitted(await store.admit(admitAsk({ tag, requestId: ridOf(rid), groups })));
    const answers = await Promise.all(rids.map((rid) => raise(store, tag, rid, 100n)));
    const sum = answers.reduce((total, answer) => total + (answer.outcome === "held" ? answer.hold : 0n), 0n);
    const { account } = await stateOf(store, tag);
    assert.deepEqual([sum, account.held], [1_000n, 1_000n]);
  });

  test("a raised hold is available in full to its charge, and is removed with it", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Xsettle", { funds: 300n });
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    await raise(store, tag, 1, 300n);
    const answer = await store.settle(settleAsk(request, permit, { amount: 290n }));
    assert.deepEqual(answer, { outcome: "settled", charged: 290n, absorbed: 0n, balance: 10n });
    const { account, holds } = await stateOf(store, tag);
    assert.deepEqual([account.held, holds], [0n, []]);
    assert.deepEqual(await raise(store, tag, 1, 400n), { outcome: "gone" }, "a late extension holds nothing");
    assert.equal((await stateOf(store, tag)).account.held, 0n);
  });

  test("extending a request without a hold answers gone: never admitted, voided, of another or an unknown account", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Xgone");
    const other = await makeAccount(store, "Xgone2");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    assert.deepEqual(await raise(store, tag, 2, 200n), { outcome: "gone" });
    assert.deepEqual(await raise(store, other, 1, 200n), { outcome: "gone" });
    assert.deepEqual(await raise(store, "Xnobody000" as AccountTag, 1, 200n), { outcome: "gone" });
    await store.settle(settleAsk(request, permit, { voided: true }));
    assert.deepEqual(await raise(store, tag, 1, 200n), { outcome: "gone" });
    assert.equal((await stateOf(store, tag)).account.held, 0n);
  });

  test("a card's hold grows within its quota and does not touch the balance (invariant 12)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Xcard", { group: "cards" });
    const card = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious: false, reference: "" };
    await store.grant(tag, { ...card, id: "quota", quota: nanoUsd(130n) });
    const request = { tag, plans: ["pro"], groups: [cardTerms()] };
    const permit = admitted(await store.admit(admitAsk({ ...request, requestId: ridOf(1) })));
    assert.equal(permit.entitlement, "quota");
    assert.deepEqual(await raise(store, tag, 1, 200n), { outcome: "held", hold: 130n });
    await store.grant(tag, { ...card, id: "open", lastsMs: 2 * DAY_MS, quota: undefined });
    assert.equal(admitted(await store.admit(admitAsk({ ...request, requestId: ridOf(2) }))).unmetered, true);
    assert.deepEqual(
      await raise(store, tag, 2, 200n),
      { outcome: "held", hold: 0n },
      "without a quota nothing is held",
    );
    const { account, entitlements } = await stateOf(store, tag);
    assert.equal(account.held, 0n);
    assert.deepEqual(
      entitlements.map((e) => [e.id, e.held]),
      [
        ["open", 0n],
        ["quota", 130n],
      ],
    );
  });

  test("an invalid amount is refused before anything is sent (invariant 8)", async () => {
    const { store } = ask();
    for (const target of [-1n, 9_007_199_254_740_993n]) {
      const bad = { tag: "Xbad000000" as AccountTag, requestId: ridOf(1), target: target as never };
      await assert.rejects(store.extend(bad), RangeError);
    }
  });
}

/** For stores whose clock can be set. */
export function extensionTimeTests(ask: Ask): void {
  test("an expired hold that a sweep has not released yet, since it releases only a limited number, still counts as expired", async () => {
    const { store, nowMs, setTime } = ask();
    const startMs = nowMs();
    const tag = await makeAccount(store, "Xswept", { funds: 10_000n });
    for (let rid = 1; rid <= SWEEP_MAX + 4; rid++)
      admitted(await store.admit(admitAsk({ tag, requestId: ridOf(rid), holdTtlMs: 1_000 + rid })));
    // The instant at which the last of them expires.
    setTime(startMs + 1_000 + SWEEP_MAX + 4);
    for (const held of [400n, 0n]) {
      assert.deepEqual(await raise(store, tag, SWEEP_MAX + 4, 200n), { outcome: "gone" });
      assert.equal((await stateOf(store, tag)).account.held, held);
    }
  });

  test("expired holds keep no funds from being taken, and others do", async () => {
    const { store, nowMs, setTime } = ask();
    const startMs = nowMs();
    const tag = await makeAccount(store, "Xrefund", { funds: 10_000n });
    for (let rid = 1; rid <= 2 * SWEEP_MAX + 1; rid++)
      admitted(await store.admit(admitAsk({ tag, requestId: ridOf(rid), holdTtlMs: rid === 1 ? 2_000 : 1_000 })));
    const payOut = { id: "out", amount: -9_900n, kind: "adjust", note: "" } as const;
    assert.deepEqual(await store.credit(tag, payOut), { outcome: "refused" });
    setTime(startMs + 1_000);
    assert.deepEqual(await store.credit(tag, { ...payOut, amount: -9_901n }), { outcome: "refused" });
    assert.deepEqual(await store.credit(tag, payOut), { outcome: "credited", balance: 100n });
    assert.equal((await stateOf(store, tag)).account.held, 100n);
  });

  test("an expired hold is not raised, and an extension does not prolong a hold (invariant 9)", async () => {
    const { store, nowMs, setTime } = ask();
    const startMs = nowMs();
    const tag = await makeAccount(store, "Xexpire");
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(1), holdTtlMs: 1_000 })));
    setTime(startMs + 900);
    assert.deepEqual(await raise(store, tag, 1, 200n), { outcome: "held", hold: 200n });
    setTime(startMs + 1_000);
    assert.deepEqual(await raise(store, tag, 1, 300n), { outcome: "gone" });
    const { account, holds } = await stateOf(store, tag);
    assert.deepEqual([account.held, holds], [0n, []]);
  });
}
