/** Who is admitted, what pays, and how much is held. */
import assert from "node:assert/strict";
import test from "node:test";
import { nanoUsd } from "../../../src/values/money.ts";
import { admitAsk, admitted, cardTerms, causeOf, DAY_MS, hashOf, makeAccount, ridOf, tagOf, terms } from "./asks.ts";
import type { Ask } from "./contract.ts";

const card = (
  id: string,
  changes: { quota?: bigint; plan?: string; lastsMs?: number; afterPrevious?: boolean } = {},
) => ({
  id,
  card: "day",
  plan: changes.plan ?? "pro",
  group: "cards",
  lastsMs: changes.lastsMs ?? DAY_MS,
  afterPrevious: changes.afterPrevious ?? false,
  quota: changes.quota === undefined ? undefined : nanoUsd(changes.quota),
  reference: `code-${id}`,
});

export function admissionTests(ask: Ask): void {
  test("a key that does not exist is unknown, whether or not the account exists (row 2 of refusal)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aunknown");
    const stranger = await store.admit(admitAsk({ tag: tagOf("Anobody"), requestId: ridOf(1) }));
    const wrongKey = await store.admit(admitAsk({ tag, requestId: ridOf(2), keyHash: hashOf("other") }));
    assert.deepEqual([causeOf(stranger), causeOf(wrongKey)], ["unknown_key", "unknown_key"]);
    assert.deepEqual((await store.inspect(tag))?.holds, []);
  });

  test("a balance covers the full hold, or what is free down to the minimum, or nothing (row 35)", async () => {
    const { store } = ask();
    for (const [funds, expected] of [
      [0n, "insufficient_balance"],
      [1n, "insufficient_balance"],
      [9n, "insufficient_balance"],
      [10n, 10n],
      [99n, 99n],
      [100n, 100n],
      [1_000n, 100n],
    ] as const) {
      const tag = await makeAccount(store, `Af${funds}x`, { funds });
      const answer = await store.admit(admitAsk({ tag, requestId: ridOf(1) }));
      assert.equal(answer.outcome === "admitted" ? answer.hold : answer.cause, expected, `with ${funds}`);
      if (answer.outcome === "admitted") assert.equal(answer.free, funds - answer.hold);
      const held = (await store.getAccount(tag))?.held;
      assert.equal(held, typeof expected === "bigint" ? expected : 0n);
    }
  });

  test("the same request id gets the same answer and one hold (row B5)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aagain");
    const groups = [terms({ requestsPerMinute: 10, tokensPerMinute: 1_000 })];
    const request = admitAsk({ tag, requestId: ridOf(1), groups, inputTokens: 7 });
    const first = await store.admit(request);
    const between = await store.inspect(tag);
    const second = await store.admit(request);
    assert.deepEqual(second, first);
    assert.deepEqual(await store.inspect(tag), between);
    assert.equal(between?.holds.length, 1);
  });

  test("a model outside the caller's plans is refused with not_in_plan, and one outside the group with group_mismatch", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aplans");
    const cause = async (number: number, changes: object) =>
      causeOf(await store.admit(admitAsk({ tag, requestId: ridOf(number), ...changes })));
    assert.equal(await cause(1, { plans: ["pro"] }), "not_in_plan");
    assert.equal(await cause(2, { plans: ["pro"], groups: [] }), "not_in_plan");
    assert.equal(await cause(3, { groups: [terms({ group: "other" })] }), "group_mismatch");
    await store.grant(tag, card("Aplans1"));
    assert.equal(await cause(4, { plans: ["pro"] }), "admitted", "the plan of a running card counts in every group");
  });

  test("a group of time cards without a running card is refused with no_entitlement even if the plan is wrong too (row 7 of refusal)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Anocard", { group: "cards" });
    const groups = [cardTerms()];
    const answer = await store.admit(admitAsk({ tag, requestId: ridOf(1), plans: ["nowhere"], groups }));
    assert.equal(causeOf(answer), "no_entitlement");
    assert.equal(answer.outcome === "refused" && answer.group, "cards");
  });

  test("the card that ends first and covers the minimum hold pays, and the balance is never touched (invariant 12)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Acards", { group: "cards" });
    await store.grant(tag, card("small", { quota: 5n, lastsMs: DAY_MS }));
    await store.grant(tag, card("middle", { quota: 60n, lastsMs: 2 * DAY_MS }));
    await store.grant(tag, card("large", { quota: 500n, lastsMs: 3 * DAY_MS }));
    const groups = [cardTerms()];
    const pays = async (number: number) => {
      const answer = admitted(await store.admit(admitAsk({ tag, requestId: ridOf(number), plans: ["pro"], groups })));
      return [answer.entitlement, answer.hold, answer.free];
    };
    assert.deepEqual(await pays(1), ["middle", 60n, 0n]);
    assert.deepEqual(await pays(2), ["large", 100n, 400n]);
    assert.equal((await store.getAccount(tag))?.held, 0n);
    for (let number = 3; number <= 6; number++) await pays(number);
    const over = await store.admit(admitAsk({ tag, requestId: ridOf(9), plans: ["pro"], groups }));
    assert.equal(causeOf(over), "quota_used");
  });

  test("a card pays if its rest is the minimum hold, and with one nano-dollar less it does not", async () => {
    const { store } = ask();
    const paidBy = async (name: string, quota: bigint) => {
      const tag = await makeAccount(store, name, { group: "cards" });
      await store.grant(tag, card(name, { quota }));
      const least = cardTerms({ holdFull: 100n, holdMin: 10n });
      return store.admit(admitAsk({ tag, requestId: ridOf(1), plans: ["pro"], groups: [least] }));
    };
    const exact = admitted(await paidBy("Aexact", 10n));
    assert.deepEqual([exact.entitlement, exact.hold, exact.free], ["Aexact", 10n, 0n]);
    assert.equal(causeOf(await paidBy("Ashort", 9n)), "quota_used");
  });

  test("a card that has not started pays nothing, even if the one before is used up", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Alater", { group: "cards" });
    await store.grant(tag, card("Al1", { quota: 5n }));
    await store.grant(tag, card("Al2", { quota: 500n, afterPrevious: true }));
    const request = admitAsk({ tag, requestId: ridOf(1), plans: ["pro"], groups: [cardTerms()] });
    assert.equal(causeOf(await store.admit(request)), "quota_used");
  });

  test("a card whose plan lacks the model pays nothing, even if it ends before another card of the group", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aunlike", { group: "cards" });
    await store.grant(tag, card("Ap1", { quota: 500n, plan: "basic" }));
    const go = (n: number) =>
      store.admit(admitAsk({ tag, requestId: ridOf(n), plans: ["free", "pro"], groups: [cardTerms()] }));
    assert.equal(causeOf(await go(1)), "no_entitlement");
    await store.grant(tag, card("Ap2", { quota: 500n, lastsMs: 2 * DAY_MS }));
    assert.equal(admitted(await go(2)).entitlement, "Ap2");
  });

  test("among cards with the same end the one that started first pays, and among those with the same start the first by name", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Atie", { group: "cards" });
    const begunMs = nowMs();
    for (const [id, agoMs] of [
      ["At1", 2_000],
      ["At2", 3_000],
      ["At3", 4_000],
      ["At0", 4_000],
    ] as const) {
      const times = { fromMs: begunMs - agoMs, lastsMs: DAY_MS + agoMs };
      await store.grant(tag, { ...card(id, { quota: 10n }), ...times });
    }
    const payers: (string | undefined)[] = [];
    for (let n = 1; n <= 4; n++) {
      const request = admitAsk({ tag, requestId: ridOf(n), plans: ["pro"], groups: [cardTerms()] });
      payers.push(admitted(await store.admit(request)).entitlement);
    }
    assert.deepEqual(payers, ["At0", "At3", "At2", "At1"]);
  });

  test("a card without a quota holds nothing", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aunmetered", { group: "cards", funds: 0n });
    await store.grant(tag, card("free"));
    const groups = [cardTerms()];
    const answer = admitted(await store.admit(admitAsk({ tag, requestId: ridOf(1), plans: ["pro"], groups })));
    assert.deepEqual([answer.hold, answer.free, answer.unmetered, answer.entitlement], [0n, undefined, true, "free"]);
    assert.equal((await store.inspect(tag))?.inFlight, 1);
  });

  test("requests in flight are limited by group or by key, and refused ones hold nothing", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aflight", { funds: 10_000n });
    await store.createKey(tag, { id: "key_second", hash: hashOf("second"), group: "big" });
    const go = async (number: number, key: string, perKey: boolean) =>
      causeOf(
        await store.admit(
          admitAsk({
            tag,
            requestId: ridOf(number),
            keyHash: hashOf(key),
            groups: [terms({ concurrency: 1, perKey })],
          }),
        ),
      );
    assert.equal(await go(1, "key", true), "admitted");
    assert.equal(await go(2, "key", true), "concurrency");
    assert.equal(await go(3, "second", true), "admitted");
    assert.equal(await go(4, "key", false), "admitted");
    assert.equal(await go(5, "second", false), "concurrency");
    const state = await store.inspect(tag);
    assert.deepEqual(state?.inFlightByScope, { big: 1, "big/key_Aflight": 1, "big/key_second": 1 });
    assert.equal(state?.account.held, 300n);
  });

  test("an account has at most 1,000 requests in flight over all its groups", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Athousand", { funds: 0n });
    const groups = [terms({ holdFull: 0n, holdMin: 0n, concurrency: 5_000 })];
    const asks = Array.from({ length: 1_001 }, (_, i) => admitAsk({ tag, requestId: ridOf(i + 1), groups }));
    const causes: string[] = [];
    // In batches: all at once they would queue for longer than a step may take on a busy machine.
    for (let from = 0; from < asks.length; from += 100) {
      const answers = await Promise.all(asks.slice(from, from + 100).map((one) => store.admit(one)));
      causes.push(...answers.map(causeOf));
    }
    assert.equal(causes.filter((cause) => cause === "admitted").length, 1_000);
    assert.equal(causes.filter((cause) => cause === "concurrency").length, 1);
  });

  test("amounts near 2^53 stay exact to the nano-dollar (invariant 8)", async () => {
    const { store } = ask();
    const most = 9_000_000_000_000_000n;
    const tag = await makeAccount(store, "Aborder", { funds: most - 1n });
    const groups = [terms({ holdFull: most, holdMin: 1n })];
    const answer = admitted(await store.admit(admitAsk({ tag, requestId: ridOf(1), groups })));
    assert.equal(answer.hold, most - 1n);
    const rest = await store.admit(admitAsk({ tag, requestId: ridOf(2), groups }));
    assert.equal(causeOf(rest), "insufficient_balance");
    assert.equal((await store.inspect(tag))?.holds[0]?.amount, most - 1n);
    const tooMuch = admitAsk({ tag, requestId: ridOf(3), groups: [terms({ holdFull: most + 1n })] });
    await assert.rejects(store.admit(tooMuch), RangeError);
  });
}
