/**
 * Which request holds an idempotency key, and what a settlement keeps of it (docs/decisions/idempotency-keeps-no-bodies.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { AdmitAsk, AdmitRefused, Admitted } from "../../../src/store/admission.ts";
import type { Store } from "../../../src/store/contract.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { admitAsk, admitted, causeOf, DAY_MS, hashOf, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";
import type { Ask } from "./contract.ts";

const HOUR_MS = 3_600_000;
const HOLD_MS = 60_000;

/** A request with an idempotency key; `body` stands for its path and body. */
function keyed(tag: AccountTag, number: number, { key = "k", body = "b", ...changes }: Keyed = {}): AdmitAsk {
  const idempotency = { key: hashOf(key), fingerprint: hashOf(`${key}${body}`) };
  return admitAsk({ tag, requestId: ridOf(number), holdTtlMs: HOLD_MS, ...changes, idempotency });
}
type Keyed = { key?: string; body?: string } & Partial<AdmitAsk>;

/** Settles a request with a key: charged 5, or voided. */
function ended(ask: AdmitAsk, permit: Admitted, how: { voided?: boolean; streamed?: boolean; keepMs?: number } = {}) {
  const { voided = false, streamed = false, keepMs = DAY_MS } = how;
  const untilMs = permit.storeTimeMs + keepMs;
  const idempotency = ask.idempotency && { ...ask.idempotency, streamed, untilMs };
  return settleAsk(ask, permit, { voided, amount: voided ? 0n : 5n, idempotency });
}

/** The cause of a refusal and the number of the request that holds the key; or "admitted". */
function answerOf(answer: Admitted | AdmitRefused): readonly unknown[] {
  if (answer.outcome === "admitted") return ["admitted"];
  return [answer.cause, answer.first === undefined ? undefined : Number.parseInt(answer.first, 16)];
}

const keysOf = async (store: Store, tag: AccountTag) =>
  (await store.inspect(tag))?.idempotency.map(({ requestId, state }) => [Number.parseInt(requestId, 16), state]);

export function idempotencyTests(ask: Ask): void {
  test("a key that a request holds is refused to other requests of the account, with that request's id", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Ikey");
    const other = await makeAccount(store, "Iother");
    const first = keyed(tag, 1);
    const permit = admitted(await store.admit(first));
    const before = await store.inspect(tag);
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 2))), ["idempotency_in_progress", 1]);
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 3, { body: "c" }))), ["idempotency_key", 1]);
    assert.deepEqual(await store.inspect(tag), before, "a refusal changes nothing");
    assert.deepEqual(await store.admit(first), permit, "the same request gets its answer again");
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 4, { key: "l" }))), ["admitted"]);
    assert.deepEqual(answerOf(await store.admit(admitAsk({ tag, requestId: ridOf(5) }))), ["admitted"]);
    assert.deepEqual(answerOf(await store.admit(keyed(other, 6))), ["admitted"]);
  });

  test("a charge is remembered with its key, as a stream or a whole reply, however often it is settled", async () => {
    const { store } = ask();
    for (const [streamed, cause] of [
      [false, "idempotency_finished"],
      [true, "idempotency_streamed"],
    ] as const) {
      const tag = await makeAccount(store, streamed ? "Istream" : "Iwhole");
      const request = keyed(tag, 1);
      const settlement = ended(request, admitted(await store.admit(request)), { streamed });
      await store.settle(settlement);
      assert.equal((await store.settle(settlement)).outcome, "duplicate");
      assert.deepEqual(answerOf(await store.admit(keyed(tag, 2))), [cause, 1]);
      assert.deepEqual(answerOf(await store.admit(keyed(tag, 3, { body: "c" }))), ["idempotency_key", 1]);
      assert.equal((await store.inspect(tag))?.ledger.filter(({ kind }) => kind === "usage").length, 1);
    }
  });

  test("a request without a charge frees its key, also when its settlement is repeated", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Ivoid");
    const first = keyed(tag, 1);
    const permit = admitted(await store.admit(first));
    const settlement = ended(first, permit, { voided: true });
    await store.settle(settlement);
    assert.deepEqual(await keysOf(store, tag), []);
    const second = keyed(tag, 2, { body: "another" });
    const again = admitted(await store.admit(second));
    assert.equal((await store.settle(settlement)).outcome, "duplicate");
    assert.deepEqual(await keysOf(store, tag), [[2, "running"]]);
    await store.settle(ended(second, again));
    assert.deepEqual(await keysOf(store, tag), [[2, "finished"]]);
  });

  test("a refused request takes no key", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Irefused", { funds: 0n });
    const asked = async (number: number, changes: Keyed) => causeOf(await store.admit(keyed(tag, number, changes)));
    assert.equal(await asked(1, {}), "insufficient_balance");
    assert.equal(await asked(2, { plans: ["pro"] }), "not_in_plan");
    assert.equal(await asked(3, { groups: [] }), "group_mismatch");
    await store.credit(tag, { id: "more", amount: 1_000n, kind: "topup", note: "" });
    const limited = [terms({ requestsPerMinute: 1, concurrency: 1 })];
    await store.admit(admitAsk({ tag, requestId: ridOf(4), groups: [terms({ concurrency: 1 })] }));
    assert.equal(await asked(5, { groups: limited }), "concurrency");
    assert.equal(await asked(6, { groups: limited }), "requests");
    assert.deepEqual(await keysOf(store, tag), []);
    assert.equal(await asked(7, { body: "c" }), "admitted");
  });

  test("of fifty requests at once with one key one is admitted and charged", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Ififty", { funds: 10_000n });
    const asks = Array.from({ length: 50 }, (_, i) => keyed(tag, i + 1));
    const answers = await Promise.all(asks.map((one) => store.admit(one)));
    const winners = asks.filter((_, i) => answers[i]?.outcome === "admitted");
    assert.equal(winners.length, 1);
    const [winner] = winners as [AdmitAsk];
    for (const answer of answers) {
      if (answer.outcome === "admitted") await store.settle(ended(winner, answer));
      else assert.deepEqual([answer.cause, answer.first], ["idempotency_in_progress", winner.requestId]);
    }
    const state = await store.inspect(tag);
    assert.equal(state?.account.spent, 5n);
    assert.deepEqual(
      state?.ledger.filter(({ kind }) => kind === "usage").map(({ reference }) => reference),
      [winner.requestId],
    );
  });

  test("a repeated settlement restores a key that a failover lost, unless another request holds the key by then", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Ilost");
    const permit = { storeTimeMs: nowMs(), group: "big", keyId: "key_Ilost", entitlement: undefined } as Admitted;
    await store.settle(ended(keyed(tag, 1), permit, { streamed: true }));
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 2))), ["idempotency_streamed", 1]);
    const taken = keyed(tag, 3, { key: "taken" });
    const holder = admitted(await store.admit(taken));
    await store.settle(ended(keyed(tag, 4, { key: "taken" }), permit));
    await store.settle(ended(keyed(tag, 5, { key: "taken" }), permit, { voided: true }));
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 6, { key: "taken" }))), ["idempotency_in_progress", 3]);
    await store.settle(ended(taken, holder));
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 7, { key: "taken" }))), ["idempotency_finished", 3]);
  });

  test("a request that was voided before it was admitted takes no key", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Igiven");
    const late = keyed(tag, 1);
    const permit = { storeTimeMs: nowMs(), group: "big", keyId: "key_Igiven", entitlement: undefined } as Admitted;
    await store.settle(ended(late, permit, { voided: true }));
    assert.equal(causeOf(await store.admit(late)), "concurrency");
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 2))), ["admitted"]);
  });
}

/** For stores whose clock the test sets. */
export function idempotencyTimeTests(ask: Ask): void {
  test("the key of a request that is never settled is free when its hold expires, to the millisecond", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Icrash");
    const crashed = keyed(tag, 1);
    const permit = admitted(await store.admit(crashed));
    setTime(nowMs() + HOLD_MS - 1);
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 2))), ["idempotency_in_progress", 1]);
    setTime(nowMs() + 1);
    const next = keyed(tag, 3);
    const held = admitted(await store.admit(next));
    // Recovery charges the crashed request after all: the key stays with the next request.
    await store.settle(ended(crashed, permit));
    assert.deepEqual(await keysOf(store, tag), [[3, "running"]]);
    await store.settle(ended(next, held, { streamed: true }));
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 4))), ["idempotency_streamed", 3]);
  });

  test("a settlement by recovery after the hold's end remembers the key for the rest of its time", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Irecover");
    const request = keyed(tag, 1);
    const permit = admitted(await store.admit(request));
    setTime(nowMs() + HOLD_MS);
    await store.settle(ended(request, permit, { keepMs: HOUR_MS }));
    setTime(permit.storeTimeMs + HOUR_MS - 1);
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 2))), ["idempotency_finished", 1]);
    setTime(permit.storeTimeMs + HOUR_MS);
    assert.deepEqual(await keysOf(store, tag), []);
    assert.deepEqual(answerOf(await store.admit(keyed(tag, 3))), ["admitted"]);
  });

  test("a settlement after its key's time keeps nothing of the key", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Ilate");
    const request = keyed(tag, 1);
    const permit = admitted(await store.admit(request));
    setTime(nowMs() + 2 * HOUR_MS);
    await store.settle(ended(request, permit, { keepMs: HOUR_MS }));
    assert.deepEqual(await keysOf(store, tag), []);
  });
}
