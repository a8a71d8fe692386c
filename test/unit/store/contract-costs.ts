/** Costs of requests: sums per day by group, model and key, and by upstream and its model. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import type { DaySum, UpstreamDaySum } from "../../../src/store/records.ts";
import type { UpstreamCost } from "../../../src/store/settlement.ts";
import { NO_COUNTS } from "../../../src/store/sums/token-sums.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { NANO_USD_MAX, nanoUsd } from "../../../src/values/money.ts";
import { utcDay } from "../../../src/values/time.ts";
import { admitAsk, admitted, leftUnpaid, makeAccount, ridOf, settleAsk } from "./asks.ts";
import type { Ask } from "./contract.ts";

const TOKENS = { input: 10, cachedInput: 0, cacheWrite: 0, output: 5, reasoning: 2 };

function cost(changes: Partial<Omit<UpstreamCost, "cost" | "absorbed">> & { cost: bigint; absorbed?: bigint }) {
  const { cost: amount, absorbed = 0n, ...rest } = changes;
  const bill = { upstream: "east", model: "m-east", requests: 1, tokens: TOKENS, charged: false };
  return { ...bill, ...rest, cost: nanoUsd(amount), absorbed: nanoUsd(absorbed) };
}

async function daysOf(store: Store, tag: AccountTag, day: string): Promise<readonly DaySum[]> {
  const { items, next } = await store.pageDays(tag, { since: day, until: day }, undefined);
  assert.equal(next, undefined);
  assert.deepEqual(await store.readDays(tag, day, day), items);
  return items;
}

/** Adds up the parts of all pages, independently of the store. */
async function upstreamsOf(store: Store, tag: AccountTag, since: string, until = since) {
  const sums = new Map<string, UpstreamDaySum>();
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await store.pageUpstreamDays(tag, { since, until }, cursor);
    for (const one of page.items) {
      const name = `${one.day} ${one.upstream} ${one.model}`;
      const before = sums.get(name);
      if (!before) {
        sums.set(name, one);
        continue;
      }
      const counts = Object.entries(one.counts).map(([kind, count]) => [
        kind,
        count + before.counts[kind as "requests"],
      ]);
      sums.set(name, {
        ...one,
        amount: nanoUsd(one.amount + before.amount),
        counts: Object.fromEntries(counts),
        cost: one.cost + before.cost,
        absorbed: one.absorbed + before.absorbed,
      });
    }
    cursor = page.next;
    pages += 1;
    assert.ok(pages < 1_000, "it never ends");
  } while (cursor !== undefined);
  return { sums: [...sums.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum), pages };
}

export function costTests(ask: Ask): void {
  test("the cost of a charge is in the sums of its group and of its upstream, once", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Kcost", { funds: 100n });
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const day = utcDay(permit.storeTimeMs);
    // 130 are owed and 100 are available; the try at the other upstream failed and is absorbed in full.
    const costs = [
      cost({ cost: 70n, charged: true }),
      cost({ cost: 9n, absorbed: 9n, upstream: "west", model: "m|^west" }),
    ];
    const attempts = [{ upstream: "west", cause: "upstream_timeout", amount: nanoUsd(9n), memo: "{}" }];
    const charge = settleAsk(request, permit, { amount: 130n, tokens: TOKENS, costs, attempts });
    assert.equal((await store.settle(charge)).outcome, "settled");
    assert.equal((await store.settle(charge)).outcome, "duplicate");
    const counts = { ...TOKENS, requests: 1 };
    const own = { day, group: "big", model: "big-1", key: "key_Kcost" };
    assert.deepEqual(await daysOf(store, tag, day), [{ ...own, amount: 100n, counts, cost: 79n, absorbed: 39n }]);
    assert.deepEqual((await upstreamsOf(store, tag, day)).sums, [
      { day, upstream: "east", model: "m-east", amount: 100n, counts, cost: 70n, absorbed: 30n },
      { day, upstream: "west", model: "m|^west", amount: 0n, counts, cost: 9n, absorbed: 9n },
    ]);

    // The same day again: all sums add up.
    const more = admitAsk({ tag, requestId: ridOf(2), groups: [] });
    const later = { ...charge, requestId: more.requestId, amount: nanoUsd(0n), attempts: [], costs: costs.slice(0, 1) };
    await store.settle(later);
    assert.deepEqual(await daysOf(store, tag, day), [
      { ...own, amount: 100n, counts: twice(counts), cost: 149n, absorbed: 39n },
    ]);
    const [east] = (await upstreamsOf(store, tag, day)).sums;
    assert.deepEqual(east, {
      ...{ day, upstream: "east", model: "m-east", amount: 100n },
      ...{ counts: twice(counts), cost: 140n, absorbed: 30n },
    });
  });

  test("the cost of a broken answer above its hold is absorbed at once, and is no separate cost", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Kcut", { funds: 100n });
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const day = utcDay(permit.storeTimeMs);
    const attempts = [{ upstream: "east", cause: "cut_over_hold", amount: nanoUsd(30n), memo: "{}" }];
    const costs = [cost({ cost: 70n, charged: true })];
    await store.settle(settleAsk(request, permit, { amount: 40n, tokens: TOKENS, costs, attempts }));
    const figures = { amount: 40n, counts: { ...TOKENS, requests: 1 }, cost: 70n, absorbed: 30n };
    const own = { day, group: "big", model: "big-1", key: "key_Kcut" };
    assert.deepEqual(await daysOf(store, tag, day), [{ ...own, ...figures }]);
    assert.deepEqual((await upstreamsOf(store, tag, day)).sums, [
      { day, upstream: "east", model: "m-east", ...figures },
    ]);
    const lines = (await store.readLedger(tag, 0, 10)).map(
      ({ debit, credit, amount }) => `${debit}>${credit} ${amount}`,
    );
    assert.deepEqual(lines.slice(1), ["acct_Kcut000000>revenue:big 40", "absorbed:cut_over_hold>revenue:big 30"]);
  });

  test("what was absorbed for a voided request is a cost of its group, key and upstream, without a request in the group's counts", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Kvoid");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const day = utcDay(permit.storeTimeMs);
    const costs = [cost({ cost: 7n, absorbed: 7n })];
    const facts = { absorbed: 7n, absorbedCause: "client_gone", upstream: "east", voided: true };
    await store.settle(settleAsk(request, permit, { ...facts, costs }));
    const own = { day, group: "big", model: "big-1", key: "key_Kvoid", amount: 0n };
    assert.deepEqual(await daysOf(store, tag, day), [{ ...own, counts: NO_COUNTS, cost: 7n, absorbed: 7n }]);
    const counts = { ...TOKENS, requests: 1 };
    assert.deepEqual((await upstreamsOf(store, tag, day)).sums, [
      { day, upstream: "east", model: "m-east", amount: 0n, counts, cost: 7n, absorbed: 7n },
    ]);
  });

  test("an unpaid disconnect has the costs of its outcome, absorbed or charged, and no others", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Kleft", { funds: 100n });
    const failed = cost({ cost: 9n, absorbed: 9n, upstream: "west", model: "m|^west" });
    const attempts = [{ upstream: "west", cause: "upstream_timeout", amount: nanoUsd(9n), memo: "{}" }];
    const leave = async (rid: number, allowance: bigint) => {
      const request = admitAsk({ tag, requestId: ridOf(rid) });
      const permit = admitted(await store.admit(request));
      const charge = [cost({ cost: 70n, charged: true }), failed, cost({ cost: 1n, absorbed: 1n, model: "m-more" })];
      const gone = settleAsk(request, permit, {
        ...{ voided: true, absorbed: 70n, absorbedCause: "client_gone", upstream: "east", tokens: TOKENS, attempts },
        costs: [cost({ cost: 70n, absorbed: 70n }), failed],
        leftUnpaid: { allowance: nanoUsd(allowance), amount: nanoUsd(130n), memo: "{}", costs: charge },
      });
      assert.equal((await store.settle(gone)).outcome, "settled");
      assert.equal((await store.settle(gone)).outcome, "duplicate");
      return utcDay(permit.storeTimeMs);
    };
    const day = await leave(1, 70n);
    const counts = { ...TOKENS, requests: 1 };
    const own = { day, group: "big", model: "big-1", key: "key_Kleft" };
    const east = { day, upstream: "east", model: "m-east" };
    const west = { day, upstream: "west", model: "m|^west", amount: 0n };
    assert.deepEqual(await daysOf(store, tag, day), [
      { ...own, amount: 0n, counts: NO_COUNTS, cost: 79n, absorbed: 79n },
    ]);
    assert.deepEqual((await upstreamsOf(store, tag, day)).sums, [
      { ...east, amount: 0n, counts, cost: 70n, absorbed: 70n },
      { ...west, counts, cost: 9n, absorbed: 9n },
    ]);
    // 130 are owed now and 100 are available.
    assert.equal(await leave(2, 70n), day);
    assert.deepEqual(await daysOf(store, tag, day), [
      { ...own, amount: 100n, counts, cost: 79n + 80n, absorbed: 79n + 40n },
    ]);
    assert.deepEqual((await upstreamsOf(store, tag, day)).sums, [
      { ...east, amount: 100n, counts: twice(counts), cost: 140n, absorbed: 70n + 30n },
      { ...east, model: "m-more", amount: 0n, counts, cost: 1n, absorbed: 1n },
      { ...west, counts: twice(counts), cost: 18n, absorbed: 18n },
    ]);
  });

  test("settlements of earlier versions leave no costs, and one without costs or charge leaves no sums", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Kold", { funds: 10n });
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const day = utcDay(permit.storeTimeMs);
    await store.settle(settleAsk(request, permit, { voided: true, absorbed: 7n, upstream: "east" }));
    await store.settle(settleAsk({ ...request, requestId: ridOf(2) }, permit, { voided: true, costs: [] }));
    assert.deepEqual(await daysOf(store, tag, day), []);
    await store.settle(settleAsk({ ...request, requestId: ridOf(3) }, permit, { amount: 40n, tokens: TOKENS }));
    const own = { day, group: "big", model: "big-1", key: "key_Kold", amount: 10n };
    const counts = { ...TOKENS, requests: 1 };
    assert.deepEqual(await daysOf(store, tag, day), [{ ...own, counts, cost: 0n, absorbed: 0n }]);
    assert.deepEqual((await upstreamsOf(store, tag, day)).sums, []);
  });

  test("costs beyond 2^53 are summed exactly to the nano-dollar", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Kbig");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const day = utcDay(permit.storeTimeMs);
    const costs = ["a", "b", "c"].map((model) => cost({ model, cost: NANO_USD_MAX, absorbed: NANO_USD_MAX - 1n }));
    for (const at of [1, 2, 3]) {
      await store.settle(settleAsk({ ...request, requestId: ridOf(at) }, permit, { voided: true, costs }));
    }
    const [own] = await daysOf(store, tag, day);
    assert.deepEqual([own?.cost, own?.absorbed], [9n * NANO_USD_MAX, 9n * (NANO_USD_MAX - 1n)]);
    const { sums } = await upstreamsOf(store, tag, day);
    assert.deepEqual(
      sums.map((sum) => sum.cost),
      Array(3).fill(3n * NANO_USD_MAX),
    );
  });

  test("a day with very many models at an upstream is read in parts that add up, together with the days around it", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Kmany");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const dayMs = 86_400_000;
    let at = 1;
    for (const back of [0, 1]) {
      for (let model = 0; model < 40; model += 1) {
        for (const upstream of ["east", "west"]) {
          const costs = [cost({ upstream, model: `model-${model}`, cost: BigInt(model + 1), charged: true })];
          const place = { ...permit, storeTimeMs: permit.storeTimeMs - back * dayMs };
          at += 1;
          await store.settle(
            settleAsk({ ...request, requestId: ridOf(at) }, place, { amount: 1n, costs, tokens: TOKENS }),
          );
        }
      }
    }
    const [since, until] = [utcDay(permit.storeTimeMs - 9 * dayMs), utcDay(permit.storeTimeMs + dayMs)];
    const { sums } = await upstreamsOf(store, tag, since, until);
    assert.equal(sums.length, 160);
    const counts = { ...TOKENS, requests: 1 };
    for (const sum of sums) {
      const number = BigInt(sum.model.slice("model-".length)) + 1n;
      assert.deepEqual([sum.cost, sum.amount, sum.absorbed, sum.counts], [number, 1n, 0n, counts], sum.model);
    }
    const own = await daysOf(store, tag, utcDay(permit.storeTimeMs));
    assert.deepEqual([own.length, own[0]?.cost], [1, 1_640n]);
  });

  test("an invalid cost is refused before anything is written", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Kbad");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const paid = cost({ cost: 5n, charged: true });
    for (const costs of [
      [],
      [{ ...paid, charged: false }],
      [paid, { ...paid, model: "other" }],
      [paid, { ...paid, charged: false }],
      [{ ...paid, upstream: "ea|st" }],
      [{ ...paid, upstream: "" }],
      [{ ...paid, absorbed: nanoUsd(6n) }],
      [{ ...paid, cost: -1n as never }],
      [{ ...paid, requests: 0.5 }],
      Array.from({ length: 10 }, (_, index) => ({ ...paid, model: `${index}`, charged: index === 0 })),
    ]) {
      await assert.rejects(store.settle(settleAsk(request, permit, { amount: 5n, costs })), RangeError);
    }
    await assert.rejects(store.settle(settleAsk(request, permit, { voided: true, costs: [paid] })), RangeError);
    const left = leftUnpaid(0n, 5n);
    for (const [costs, charged] of [
      [[paid], [paid]],
      [[], []],
      [[], [{ ...paid, charged: false }]],
      [[], [paid, { ...paid, model: "other" }]],
      [[], [{ ...paid, upstream: "ea|st" }]],
    ]) {
      const facts = { voided: true, costs, leftUnpaid: { ...left, costs: charged ?? [] } };
      await assert.rejects(store.settle(settleAsk(request, permit, facts)), RangeError);
    }
    assert.equal((await store.settle(settleAsk(request, permit, { amount: 5n, costs: [paid] }))).outcome, "settled");
  });
}

function twice(counts: Readonly<Record<string, number>>): object {
  return Object.fromEntries(Object.entries(counts).map(([kind, count]) => [kind, 2 * count]));
}
