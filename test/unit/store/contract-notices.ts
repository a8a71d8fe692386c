/**
 * Notices are written once by the step that they report, kept in order, and limited in number. The bench reports balances below
 * 300.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { GATEWAY_OUTBOX, NOTICES_MAX } from "../../../src/store/notices.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk, tagOf } from "./asks.ts";
import type { Ask } from "./contract.ts";

async function charge(store: Store, tag: AccountTag, rid: number, amount: bigint): Promise<void> {
  const ask = admitAsk({ tag, requestId: ridOf(rid) });
  const settlement = settleAsk(ask, admitted(await store.admit(ask)), { amount });
  assert.equal((await store.settle(settlement)).outcome, "settled");
  assert.equal((await store.settle(settlement)).outcome, "duplicate");
}

const move = (store: Store, tag: AccountTag, id: string, amount: bigint) =>
  store.credit(tag, { id, amount, kind: "adjust", note: "" });

export function noticeTests(ask: Ask): void {
  test("a balance that falls below its threshold is reported once, and again after it was above", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Nlow");
    await charge(store, tag, 1, 700n);
    assert.deepEqual((await store.readNotices(tag, 10)).notices, [], "a balance at the threshold is not below it");
    await charge(store, tag, 2, 1n);
    await charge(store, tag, 3, 1n);
    await move(store, tag, "below", 1n);
    await move(store, tag, "up", 100n);
    await move(store, tag, "down", -200n);
    await move(store, tag, "down", -200n);
    const { name, taken, last, notices } = await store.readNotices(tag, 10);
    assert.deepEqual([name, taken, last], ["Nlow", 0, 2]);
    assert.deepEqual(
      notices.map(({ seq, kind, ref, data }) => ({ seq, kind, ref, data })),
      [
        { seq: 1, kind: "balance_low", ref: ridOf(2), data: { balance: "299", below: "300", by: "request" } },
        { seq: 2, kind: "balance_low", ref: "down", data: { balance: "199", below: "300", by: "adjustment" } },
      ],
    );
  });

  test("an account's own threshold replaces that of the configuration, and 0 means none", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Nown");
    const set = await store.setNotifyBelow(tag, nanoUsd(900n));
    assert.equal(set?.notifyBelow, 900n);
    await charge(store, tag, 1, 101n);
    await store.setNotifyBelow(tag, nanoUsd(0n));
    await charge(store, tag, 2, 800n);
    await store.setNotifyBelow(tag, undefined);
    assert.equal((await store.getAccount(tag))?.notifyBelow, undefined);
    const told = (await store.readNotices(tag, 10)).notices.map(({ data }) => data.below);
    assert.deepEqual(told, ["900"]);
    assert.equal(await store.setNotifyBelow(tagOf("Nnobody"), nanoUsd(1n)), undefined);
  });

  test("a repeated write of a threshold does not undo a later one", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Nrev");
    const first = await store.setNotifyBelow(tag, nanoUsd(5n));
    const second = await store.setNotifyBelow(tag, nanoUsd(6n));
    assert.ok((first?.notifyRevision ?? 0) < (second?.notifyRevision ?? 0));
    assert.equal((await store.setNotifyBelow(tag, nanoUsd(5n), first?.notifyRevision))?.notifyBelow, 6n);
  });

  test("a suspended key is reported by the same step, and once", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Nkey");
    const key = await store.changeKey(tag, "key_Nkey", { status: "suspended", name: "Laptop" });
    await store.changeKey(tag, "key_Nkey", { status: "suspended" });
    await store.changeKey(tag, "key_Nkey", { status: "normal" });
    await store.revokeKey(tag, "key_Nkey");
    const { notices } = await store.readNotices(tag, 10);
    assert.deepEqual(
      notices.map(({ kind, ref, data }) => ({ kind, ref, data })),
      [
        {
          kind: "key_suspended",
          ref: `key_Nkey:${key?.revision}`,
          data: { key: "key_Nkey", name: "Laptop", group: "big" },
        },
      ],
    );
  });

  test("a notice that is added once is not added again, even after it was taken", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Nonce");
    const notice = { kind: "card_ending", ref: "c1", data: { plan: "pro" } } as const;
    const once = { name: "c1", latest: 1 };
    assert.equal(await store.addNotice(tag, notice, once), "added");
    await store.takeNotice(tag, 1);
    assert.equal(await store.addNotice(tag, notice, once), "known");
    assert.equal(await store.addNotice(tagOf("Nnobody"), notice, once), "none");
    assert.equal(await store.addNotice(tag, notice), "added");
    assert.deepEqual(
      (await store.readNotices(tag, 10)).notices.map(({ seq }) => seq),
      [2],
    );
  });

  test("of recurring notices only the latest mark is kept, and an earlier one is not added again", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Nspan");
    const tell = (name: string, latest: number) =>
      store.addNotice(tag, { kind: "budget_reached", ref: `${name}:${latest}`, data: {} }, { name, latest });
    const told: string[] = [];
    for (let day = 100; day < 130; day++) told.push(await tell("key_1:day", day * 86_400_000));
    assert.deepEqual([...new Set(told)], ["added"]);
    for (const day of [129, 128, 100]) assert.equal(await tell("key_1:day", day * 86_400_000), "known");
    assert.equal(await tell("key_1:month", 86_400_000), "added");
    assert.equal(await tell("key_1:total", 9_000_000_000_000_000), "added");
    assert.deepEqual((await store.inspect(tag))?.notices.marks, {
      "budget_reached:key_1:day": 129 * 86_400_000,
      "budget_reached:key_1:month": 86_400_000,
      "budget_reached:key_1:total": 9_000_000_000_000_000,
    });
    assert.equal((await store.readNotices(tag, 100)).last, 32);
  });

  test("taking a notice removes it and all before it, and taking it again changes nothing", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Ntake");
    for (const ref of ["a", "b", "c", "d"]) await store.addNotice(tag, { kind: "balance_low", ref, data: {} });
    await store.takeNotice(tag, 9);
    await store.takeNotice(tag, 2);
    await store.takeNotice(tag, 2);
    await store.takeNotice(tag, 1);
    const { taken, last, notices } = await store.readNotices(tag, 1);
    assert.deepEqual([taken, last, notices.map(({ ref }) => ref)], [2, 4, ["c"]]);
    assert.deepEqual(
      (await store.inspect(tag))?.notices.waiting.map(({ ref }) => ref),
      ["c", "d"],
    );
  });

  test("while a receiver is down only the newest notices are kept, and the number of dropped ones is visible", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Nfull");
    const more = NOTICES_MAX + 20;
    for (let i = 1; i <= more; i++)
      await store.addNotice(tag, { kind: "balance_low", ref: `${i}`, data: { n: `${i}` } });
    const all = await store.readNotices(tag, more);
    assert.deepEqual([all.taken, all.last, all.notices.length], [0, more, NOTICES_MAX]);
    assert.equal(all.notices[0]?.seq, 21);
    // Notice 20 was delivered while newer ones arrived, and overwritten by then.
    await store.takeNotice(tag, 20);
    const { notices } = await store.readNotices(tag, more);
    assert.deepEqual(
      [notices.length, notices.at(-1)?.ref],
      [NOTICES_MAX, `${more}`],
      "no newer one is removed with it",
    );
    await store.takeNotice(tag, 21);
    const rest = await store.readNotices(tag, 2);
    assert.deepEqual([rest.taken, rest.notices.map(({ ref }) => ref)], [21, ["22", "23"]]);
    const [page] = (await store.pageNotices("Nful", 5)).items;
    assert.deepEqual(page, { tag, name: "Nfull", waiting: NOTICES_MAX - 1 });
    await store.takeNotice(tag, more);
    assert.deepEqual((await store.inspect(tag))?.notices.waiting, []);
    assert.ok(!(await store.pageNotices("Nful", 200)).items.some((one) => one.tag === tag));
  });

  test("each account with a waiting notice is found once, page by page, whatever its tag", async () => {
    const { store } = ask();
    const tags = ["Nz", "Nx", "Ny", "Nw"].map(tagOf);
    for (const [at, tag] of tags.entries()) {
      await store.createAccount({ tag, name: `Npage${at}`, plan: "free" });
      await store.addNotice(tag, { kind: "balance_low", ref: "a", data: {} });
    }
    const found: string[] = [];
    let cursor: string | undefined = "Npage";
    do {
      const page: Awaited<ReturnType<typeof store.pageNotices>> = await store.pageNotices(cursor, 1);
      found.push(...page.items.map(({ tag }) => tag));
      cursor = page.next;
    } while (cursor !== undefined);
    assert.deepEqual(found.filter((tag) => tags.includes(tagOf(tag))).sort(), tags.toSorted());
  });

  test("the gateway has a separate queue", async () => {
    const { store } = ask();
    const { last } = await store.readNotices(GATEWAY_OUTBOX, 1);
    const notice = { kind: "upstream_out", ref: `r1:${last}`, data: { upstream: "east" } } as const;
    assert.equal(await store.addNotice(GATEWAY_OUTBOX, notice), "added");
    const { name, notices } = await store.readNotices(GATEWAY_OUTBOX, 10);
    assert.deepEqual([name, notices.at(-1)?.ref], ["", notice.ref]);
    await store.takeNotice(GATEWAY_OUTBOX, last + 1);
    assert.deepEqual((await store.readNotices(GATEWAY_OUTBOX, 10)).notices, []);
  });
}
