/**
 * Notices other than those that the store's own steps write: cards about to end, upstreams, books, and dropped notices.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { budgetNotices } from "../../../src/notices/budget-notices.ts";
import { watchCards } from "../../../src/notices/card-watch.ts";
import { GatewayQueue } from "../../../src/notices/gateway-queue.ts";
import type { AdmitRefused } from "../../../src/store/admission.ts";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import type { Log } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { Secret } from "../../../src/values/secret.ts";
import type { NoticeSettings } from "../../../src/values/settings.ts";
import { openStandingStore } from "../console/test-store.ts";
import { ManualClock } from "../settle/rig.ts";
import { cardTerms, makeAccount, ridOf, settleAsk, tagOf } from "../store/asks.ts";
import { rest, startRig, until } from "./rig.ts";

const HOUR_MS = 3_600_000;
const bodyOf = (text: string | undefined) =>
  JSON.parse(text ?? "{}") as { type: string; data: Record<string, unknown> };

test("a card's end is announced once, in the last quarter of its time, and not before the card runs", async (t) => {
  const { clock, store, receiver, tag } = await startRig(t);
  const card = { card: "day", plan: "pro", group: "cards", afterPrevious: false, reference: "" };
  await store.grant(tag, { ...card, id: "soon", lastsMs: 10 * HOUR_MS, quota: nanoUsd(5_000n) });
  await store.grant(tag, { ...card, id: "later", lastsMs: 90 * HOUR_MS, quota: undefined });
  await store.grant(tag, {
    ...card,
    id: "next",
    lastsMs: HOUR_MS,
    quota: undefined,
    fromMs: clock.wallMs() + 14 * HOUR_MS,
  });
  const request = { tag, requestId: ridOf(1), groups: [cardTerms()] };
  const paidBy = { storeTimeMs: clock.wallMs(), group: "cards", keyId: "key_Told", entitlement: "soon" };
  await store.settle(settleAsk(request, paidBy, { amount: 1_500n }));
  const { log } = receiver;
  const pass = async (ms: number) => {
    // A jump in time ends the lease on the delivery, which is then renewed.
    for (const step of [ms, 2_500, 2_500, 2_500]) {
      await rest(clock);
      await clock.advance(step);
    }
    await rest(clock);
  };
  const grantedMs = clock.wallMs();
  await pass(5_000);
  assert.equal(log.length, 0);
  for (let hours = 0; hours < 7; hours++) await pass(HOUR_MS);
  assert.equal(log.length, 0);
  await pass(HOUR_MS);
  await until(clock, () => receiver.log.length === 1);
  for (let hours = 0; hours < 3; hours++) await pass(HOUR_MS);
  assert.equal(receiver.log.length, 1);
  const { type, data } = bodyOf(log[0]?.body);
  assert.equal(type, "card_ending");
  const { account, ends_at: ends, ...rest_ } = data;
  assert.deepEqual(account, { id: `acct_${tag}`, name: "Told" });
  assert.equal(Date.parse(String(ends)) - grantedMs, 10 * HOUR_MS);
  assert.deepEqual(rest_, {
    card: "soon",
    plan: "pro",
    group: "cards",
    quota_usd: "0.000005",
    quota_nano_usd: "5000",
    rest_usd: "0.0000035",
    rest_nano_usd: "3500",
  });
});

test("the cards of all accounts are checked, and a notice that the store did not accept is written with the next check", async (t) => {
  const card = { card: "day", plan: "pro", group: "cards", afterPrevious: false, reference: "", lastsMs: HOUR_MS / 3 };
  const { store: real } = await startRig(t, { settings: { kinds: new Set() } });
  let asked = 0;
  const addNotice: Store["addNotice"] = (...notice) =>
    ++asked === 1 ? Promise.reject(new StoreError("unavailable", "no")) : real.addNotice(...notice);
  const { clock, store } = await startRig(t, { calls: { addNotice } });
  for (let i = 10; i < 70; i++) await makeAccount(store, `A${i}`, { funds: 0n });
  const last = await makeAccount(store, "Zed", { funds: 0n });
  await makeAccount(real, "Zed", { funds: 0n });
  await store.grant(last, { ...card, id: "soon", quota: undefined });
  const look = async (ms: number) => {
    for (const step of [ms, 2_500, 2_500, 2_500]) {
      await rest(clock);
      await clock.advance(step);
    }
    await rest(clock);
  };
  await look(5_000);
  assert.equal(asked, 1);
  await look(600_000);
  assert.equal(asked, 2);
  const { notices } = await real.readNotices(last, 5);
  assert.deepEqual(
    notices.map(({ kind, ref }) => [kind, ref]),
    [["card_ending", "soon"]],
  );
  await look(600_000);
  assert.equal(asked, 2);
});

test("a used-up budget is announced once in its period, whichever process refuses requests for it", async (t) => {
  const { clock, store, receiver, tag } = await startRig(t);
  const log = { warn: () => assert.fail() } as unknown as Log;
  const reporters = [1, 2].map(() => budgetNotices({ store, clock, log }));
  const refused: AdmitRefused = {
    ...{ outcome: "refused", cause: "key_budget", group: "big", retryAfterMs: undefined },
    ...{ limits: { requests: undefined, tokens: undefined }, span: "day", budget: nanoUsd(5_000n), keyId: "key_1" },
  };
  const dayMs = Date.UTC(2026, 10, 24);
  for (const reportRefusal of [...reporters, ...reporters]) reportRefusal(tag, { ...refused, resetsAtMs: dayMs });
  await until(clock, () => receiver.log.length === 1);
  for (const reportRefusal of reporters) reportRefusal(tag, { ...refused, resetsAtMs: dayMs + 24 * HOUR_MS });
  for (const reportRefusal of reporters) reportRefusal(tag, { ...refused, cause: "account_budget", resetsAtMs: dayMs });
  await until(clock, () => receiver.log.length === 3);
  await rest(clock);
  const written = receiver.log
    .map(({ body }) => bodyOf(body))
    .map(({ type, data }) => [type, data.scope, data.resets_at]);
  assert.deepEqual(written, [
    ["budget_reached", "key_1", "2026-11-24T00:00:00.000Z"],
    ["budget_reached", "key_1", "2026-11-25T00:00:00.000Z"],
    ["budget_reached", `acct_${tag}`, "2026-11-24T00:00:00.000Z"],
  ]);
});

test("if the store loses the notices about a budget and a card, they are written again, under the same reference", async (t) => {
  const { clock, tag } = await startRig(t);
  const stores = [await openStandingStore(t), await openStandingStore(t)];
  for (const each of stores) {
    await each.createAccount({ tag, name: "Told", plan: "pro" });
    const card = { id: "soon", card: "day", plan: "pro", group: "cards", quota: undefined, reference: "r" };
    await each.grant(tag, { ...card, lastsMs: HOUR_MS / 3, afterPrevious: false });
  }
  let [store] = stores as [Store, Store];
  const here: Pick<Store, "addNotice" | "listAccountNames" | "listCards"> = {
    addNotice: (...ask) => store.addNotice(...ask),
    listAccountNames: (...ask) => store.listAccountNames(...ask),
    listCards: (...ask) => store.listCards(...ask),
  };
  const log = { warn: (facts: unknown) => assert.fail(JSON.stringify(facts)) } as unknown as Log;
  const reportRefusal = budgetNotices({ store: here, clock, log });
  const settings = () =>
    ({ kinds: new Set(["card_ending"]), cardEndsWithinMs: 40 * HOUR_MS }) as unknown as NoticeSettings;
  const watch = watchCards({ store: here, settings, isLeader: () => true, clock, log });
  t.after(() => watch.stop());
  const refused: AdmitRefused = {
    ...{ outcome: "refused", cause: "key_budget", group: "big", retryAfterMs: undefined, keyId: "key_1" },
    ...{ limits: { requests: undefined, tokens: undefined }, span: "total", budget: nanoUsd(5_000n) },
  };
  const written = async () => (await store.readNotices(tag, 9)).notices.map(({ kind, ref }) => `${kind} ${ref}`).sort();
  const all = ["budget_reached key_1:total:5000", "card_ending soon"];
  reportRefusal(tag, refused);
  for (let looks = 0; looks < 2; looks++) await clock.advance(600_000);
  await rest(clock);
  assert.deepEqual(await written(), all);
  store = stores[1] as Store;
  assert.deepEqual(await written(), []);
  for (let looks = 0; looks < 8; looks++) {
    await clock.advance(600_000);
    await rest(clock);
  }
  reportRefusal(tag, refused);
  await rest(clock);
  assert.deepEqual(await written(), all);
});

test("an account whose cards cannot be read does not prevent notices to others", async (t) => {
  const clock = new ManualClock();
  const store = await openStandingStore(t);
  const card = { card: "day", plan: "pro", group: "cards", afterPrevious: false, reference: "", lastsMs: HOUR_MS / 3 };
  for (const name of ["Afirst", "Bsecond", "Cthird"]) {
    const tag = await makeAccount(store, name);
    await store.grant(tag, { ...card, id: `card${name}`, quota: undefined });
  }
  const damaged = new StoreError("unavailable", "DAMAGED", { outcome: "refused" });
  const here: Pick<Store, "listAccountNames" | "listCards" | "addNotice"> = {
    addNotice: (...ask) => store.addNotice(...ask),
    listAccountNames: (...ask) => store.listAccountNames(...ask),
    listCards: (tag) => (tag === tagOf("Bsecond") ? Promise.reject(damaged) : store.listCards(tag)),
  };
  const reasons: string[] = [];
  const log = { warn: ({ reason }: { reason: string }) => reasons.push(reason) } as unknown as Log;
  const settings = () =>
    ({ kinds: new Set(["card_ending"]), cardEndsWithinMs: 40 * HOUR_MS }) as unknown as NoticeSettings;
  const watch = watchCards({ store: here, settings, isLeader: () => true, clock, log });
  t.after(() => watch.stop());
  await clock.advance(5_000);
  await rest(clock);
  const written = async (name: string) => (await store.readNotices(tagOf(name), 9)).notices.map(({ ref }) => ref);
  assert.deepEqual(await written("Afirst"), ["cardAfirst"]);
  assert.deepEqual(await written("Bsecond"), []);
  assert.deepEqual(await written("Cthird"), ["cardCthird"]);
  assert.deepEqual(reasons, [`acct_${tagOf("Bsecond")}: DAMAGED`]);
});

test("a notice about a budget that the store did not accept is written with the next refusal", async (t) => {
  const { clock } = await startRig(t);
  let asked = 0;
  const warned = Promise.withResolvers<void>();
  const store: Pick<Store, "addNotice"> = {
    addNotice: () => (++asked === 1 ? Promise.reject(new StoreError("unavailable", "no")) : Promise.resolve("added")),
  };
  const reportRefusal = budgetNotices({ store, clock, log: { warn: () => warned.resolve() } as unknown as Log });
  const refused: AdmitRefused = {
    ...{ outcome: "refused", cause: "key_budget", group: "big", retryAfterMs: undefined },
    ...{ limits: { requests: undefined, tokens: undefined }, span: "day", budget: nanoUsd(5_000n), keyId: "key_1" },
  };
  reportRefusal(tagOf("Told"), refused);
  await warned.promise;
  reportRefusal(tagOf("Told"), refused);
  reportRefusal(tagOf("Told"), refused);
  assert.equal(asked, 2);
});

test("notices written by other processes are found on every page of accounts", async (t) => {
  const other = await startRig(t);
  other.receiver.answer = () => ({ status: 500 });
  await other.addNotice("first");
  const { readNotices, takeNotice, pageNotices } = other.store;
  const { clock, receiver } = await startRig(t, {
    calls: {
      readNotices,
      takeNotice,
      pageNotices: async (cursor, limit) =>
        cursor === undefined ? { items: [], next: "A" } : pageNotices(undefined, limit),
    },
  });
  for (let turn = 0; turn < 8 && receiver.log.length === 0; turn++) {
    await rest(clock);
    await clock.advance(250);
  }
  assert.deepEqual(
    receiver.log.map(({ reference }) => reference),
    ["first"],
  );
});

test("a notice written by another process is found within three seconds if all accounts are on one page", async (t) => {
  const other = await startRig(t, { settings: { url: new Secret("http://127.0.0.1:9") } });
  const { readNotices, takeNotice, pageNotices } = other.store;
  const { clock, receiver } = await startRig(t, { calls: { readNotices, takeNotice, pageNotices } });
  await rest(clock);
  await other.addNotice("first");
  for (let turn = 0; turn < 12 && receiver.log.length === 0; turn++) {
    await clock.advance(250);
    await rest(clock);
  }
  assert.deepEqual(
    receiver.log.map(({ reference }) => reference),
    ["first"],
  );
});

test("changes of an account are announced at once, with amounts as text", async (t) => {
  const { clock, store, receiver, tag } = await startRig(t);
  await store.credit(tag, { id: "fix-1", amount: -800n, kind: "adjust", note: "" });
  await until(clock, () => receiver.log.length === 1);
  assert.deepEqual(bodyOf(receiver.log[0]?.body).data, {
    account: { id: `acct_${tag}`, name: "Told" },
    balance_usd: "0.0000002",
    balance_nano_usd: "200",
    below_usd: "0.0000003",
    below_nano_usd: "300",
    by: "adjustment",
    reference: "fix-1",
  });
});

test("dropped notices are reported by the next delivered one, in each of its attempts, and counted", async (t) => {
  const { clock, receiver, addNotice, metric } = await startRig(t);
  receiver.answer = () => ({ status: 500 });
  await addNotice("0");
  await until(clock, () => receiver.log.length === 1);
  for (let i = 1; i < 300; i++) await addNotice(`${i}`);
  await rest(clock);
  const first = receiver.log.length;
  await clock.advance(5_000);
  await until(clock, () => receiver.log.length > first);
  receiver.answer = () => ({ status: 200 });
  await rest(clock);
  await clock.advance(30_000);
  await until(clock, () => receiver.log.at(-1)?.reference === "299");
  const said = receiver.log.filter(({ reference }) => reference === "44").map(({ body }) => bodyOf(body).data.dropped);
  assert.deepEqual(said, [44, 44]);
  assert.equal(receiver.log.filter(({ status }) => status === 200).length, 256);
  await rest(clock);
  assert.equal(await metric('notices_lost_total{cause="dropped"}'), 44);
});

test("a single dropped notice is counted, too", async (t) => {
  const { clock, receiver, addNotice, metric } = await startRig(t);
  receiver.answer = () => ({ status: 500 });
  await addNotice("0");
  await until(clock, () => receiver.log.length === 1);
  for (let i = 1; i <= 256; i++) await addNotice(`${i}`);
  receiver.answer = () => ({ status: 200 });
  await rest(clock);
  await clock.advance(5_000);
  await until(clock, () => receiver.log.at(-1)?.reference === "256");
  await rest(clock);
  assert.equal(await metric('notices_lost_total{cause="dropped"}'), 1);
});

test("a notice about no account names the gateway that sends it", async (t) => {
  const { clock, receiver, notices, store } = await startRig(t);
  notices.note("upstream_out", { upstream: "east", reason: "failures", rest_seconds: "5" });
  notices.note("upstream_back", { upstream: "east" });
  await until(clock, () => receiver.log.length === 2);
  const [out, back] = receiver.log.map(({ body }) => bodyOf(body));
  assert.deepEqual([out?.type, back?.type], ["upstream_out", "upstream_back"]);
  assert.deepEqual([out?.data.upstream, out?.data.generation], ["east", "1"]);
  assert.ok(out?.data.instance && out.data.instance === back?.data.instance);
  await rest(clock);
  assert.deepEqual((await store.readNotices("", 5)).notices, []);
});

test("a notice from before there is a store is delivered once there is one", async (t) => {
  const { clock, receiver } = await startRig(t, {
    early: (notices) => notices.note("books_off", { finding: "store_older" }),
  });
  await until(clock, () => receiver.log.length === 1);
  const { type, data } = bodyOf(receiver.log[0]?.body);
  assert.deepEqual([type, data.finding], ["books_off", "store_older"]);
});

/** A queue whose store accepts the first notice when `first` resolves, and all others at once. */
function queueBehind(first: Promise<void>): { queue: GatewayQueue; clock: ManualClock; added: (string | undefined)[] } {
  const clock = new ManualClock();
  const added: (string | undefined)[] = [];
  const queue = new GatewayQueue({
    store: {
      async addNotice(_outbox, { data }) {
        added.push(data.upstream);
        if (added.length === 1) await first;
        return "added";
      },
    },
    settings: () => ({ kinds: new Set(["upstream_out"]) }) as unknown as NoticeSettings,
    clock,
    metrics: createMetrics(),
    replica: { instance: "one" },
    generation: () => 1,
    onDirect: undefined,
  });
  return { queue, clock, added };
}

test("a notice that arrives at the instant at which the store accepts or refuses the one before waits for no other", async () => {
  for (const fails of [false, true]) {
    for (const turns of [0, 1, 2, 3, 4]) {
      const first = Promise.withResolvers<void>();
      const { queue, clock, added } = queueBehind(first.promise);
      queue.note("upstream_out", { upstream: "east" });
      if (fails) first.reject(new StoreError("unavailable", "no"));
      else first.resolve();
      for (let turn = 0; turn < turns; turn++) await undefined;
      queue.note("upstream_out", { upstream: "west" });
      await rest(clock);
      if (fails) await clock.advance(2_000);
      assert.deepEqual(added, ["east", ...(fails ? ["east"] : []), "west"], `${turns} turns, fails: ${fails}`);
    }
  }
});

test("a notice that arrives at that instant is in the store when the gateway has stopped", async () => {
  for (const turns of [0, 1, 2, 3, 4]) {
    const first = Promise.withResolvers<void>();
    const { queue, added } = queueBehind(first.promise);
    queue.note("upstream_out", { upstream: "east" });
    first.resolve();
    for (let turn = 0; turn < turns; turn++) await undefined;
    queue.note("upstream_out", { upstream: "west" });
    await queue.stop();
    assert.deepEqual(added, ["east", "west"], `${turns} turns`);
  }
});

/** A queue with 64 notices, whose store refuses all of them. */
async function fullQueue(kind: "unavailable" | "older") {
  const [clock, metrics] = [new ManualClock(), createMetrics()];
  const queue = new GatewayQueue({
    store: { addNotice: () => Promise.reject(new StoreError(kind, "no")) },
    settings: () => ({ kinds: new Set(["upstream_out"]) }) as unknown as NoticeSettings,
    clock,
    metrics,
    replica: { instance: "one" },
    generation: () => 1,
    onDirect: () => {},
  });
  const note = (upstream: string) => queue.note("upstream_out", { upstream });
  for (let i = 1; i <= 64; i++) note(`${i}`);
  await rest(clock);
  const lost = async () =>
    Number(/^tollgate_notices_lost_total\{cause="dropped"\} (\d+)$/m.exec((await metrics.page()).body)?.[1] ?? 0);
  return { queue, clock, note, lost };
}

test("while the store is unreachable 64 notices wait for it, and each further one drops the oldest", async () => {
  const { note, lost } = await fullQueue("unavailable");
  assert.equal(await lost(), 0);
  for (const one of ["65", "66"]) note(one);
  assert.equal(await lost(), 2);
});

test("of the notices in memory the newest 64 wait, and the first of them gives the number of those missing before it", async () => {
  const { queue, clock, note } = await fullQueue("older");
  const head = () => {
    const { taken, last, notices } = queue.read();
    return { taken, last, first: notices[0]?.seq, upstream: notices[0]?.data.upstream };
  };
  assert.deepEqual(head(), { taken: 0, last: 64, first: 1, upstream: "1" });
  for (const one of ["65", "66"]) note(one);
  await rest(clock);
  assert.deepEqual(head(), { taken: 0, last: 66, first: 3, upstream: "3" });
  queue.take(3);
  assert.deepEqual(head(), { taken: 3, last: 66, first: 4, upstream: "4" });
});

test("a kind that is not configured is not written", async (t) => {
  const { clock, store, receiver, notices, tag } = await startRig(t, { settings: { kinds: new Set(["card_ending"]) } });
  notices.note("books_off", { finding: "store_older" });
  notices.budgetMet(tag, {
    ...{ outcome: "refused", cause: "key_budget", group: "big", retryAfterMs: undefined },
    ...{ limits: { requests: undefined, tokens: undefined }, span: "total", budget: nanoUsd(5n), keyId: "key_1" },
  });
  await store.credit(tag, { id: "fix-1", amount: -800n, kind: "adjust", note: "" });
  await rest(clock);
  assert.deepEqual((await store.inspect(tag))?.notices.last, 0);
  assert.deepEqual(receiver.log, []);
});

test("notices about a store that must not be used are sent from memory, those during an outage after it", async (t) => {
  let kind: "older" | "unavailable" | undefined = "unavailable";
  let refused = 0;
  const calls: Partial<Store> = {};
  const rig = await startRig(t, { calls });
  const { clock, receiver, notices, store } = rig;
  await rest(clock);
  const real = store.addNotice;
  // The answer of the gate to the store, and of an unreachable Redis.
  const gated = await startRig(t, {
    calls: {
      async addNotice(...ask) {
        if (kind === undefined) return real(...ask);
        refused += 1;
        throw new StoreError(kind, "no");
      },
      pageNotices: () => Promise.reject(new StoreError("older", "no")),
      leaseNotices: () => Promise.reject(new StoreError("older", "no")),
    },
  });
  gated.notices.note("upstream_out", { upstream: "east" });
  await until(gated.clock, () => refused === 1);
  kind = "older";
  await rest(gated.clock);
  await gated.clock.advance(2_000);
  await until(gated.clock, () => gated.receiver.log.length === 1);
  gated.notices.note("books_off", { finding: "store_older" });
  await until(gated.clock, () => gated.receiver.log.length === 2);
  assert.deepEqual(
    gated.receiver.log.map(({ type }) => type),
    ["upstream_out", "books_off"],
  );
  assert.equal(receiver.log.length, 0);
  assert.ok(notices.status()?.isLeader);
});

test("without a receiver no notice is written, and waiting notices go to the next receiver", async (t) => {
  const { clock, store, receiver, notices, addNotice, tag } = await startRig(t);
  receiver.answer = () => ({ status: 500 });
  await addNotice("first");
  await until(clock, () => receiver.log.length === 1);
  await rest(clock);
  notices.apply(undefined);
  await store.credit(tag, { id: "fix-1", amount: -800n, kind: "adjust", note: "" });
  await rest(clock);
  assert.equal((await store.inspect(tag))?.notices.last, 1);
  assert.equal(notices.status(), undefined);
  assert.equal(await notices.test(), undefined);
  assert.equal(await notices.retry(), false);
  assert.equal((await store.readNotices(tagOf("Told"), 5)).notices.length, 1);
});
