/**
 * docs/failure-model.md rows G2 and B13: during a rolling upgrade scripts of two versions work on one Redis. `previous/` has
 * scripts of the previous version, each with its shared parts in front, as that version sent them. That version does not know
 * `todo`.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { type TestContext } from "node:test";
import type { AdmitAsk, Admitted } from "../../../src/store/admission.ts";
import type { Store } from "../../../src/store/contract.ts";
import { admittedOf, type HoldRecord } from "../../../src/store/hold-record.ts";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import { dayField, limitScope, settleAccounts } from "../../../src/store/names.ts";
import { openStore } from "../../../src/store/open.ts";
import { loadScripts } from "../../../src/store/redis/scripts.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { ACCOUNT_CONCURRENCY_MAX, SETTLE_HORIZON_MS, SETTLED_MARK_MS } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { Secret } from "../../../src/values/secret.ts";
import { utcDay } from "../../../src/values/time.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import { startRedis, type TestRedis } from "../../rig/redis.ts";
import { startScriptStopper } from "../../rig/script-stopper.ts";
import { admitAsk, admitted, cardTerms, codeHashOf, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";
import { openUrl, PATIENT } from "./benches.ts";

const sourceOf = (name: string) => readFileSync(new URL(`previous/${name}.lua`, import.meta.url), "utf8");
const ADMIT = sourceOf("admit");
const SETTLE = sourceOf("settle");
const GROUPS = [terms({ requestsPerMinute: 60, tokensPerMinute: 6_000, concurrency: 3 })];

interface Fleet {
  readonly redis: TestRedis;
  readonly store: Store;
  /** The previous version's admission. */
  admitBefore(ask: AdmitAsk): Promise<Admitted | string>;
  /** The previous version's settlement. @returns the outcome. */
  settleBefore(ask: SettleAsk): Promise<string>;
}

async function fleet(t: TestContext): Promise<Fleet> {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  return {
    redis,
    store,
    async admitBefore(ask) {
      const keys = [`{a:${ask.tag}}`, `{a:${ask.tag}}:h`, `{a:${ask.tag}}:hx`, `{a:${ask.tag}}:d:${ask.requestId}`];
      const groups = ask.groups.map((one) => [
        one.group,
        one.kind,
        `${one.holdFull}`,
        `${one.holdMin}`,
        `${one.requestsPerMinute ?? ""}`,
        `${one.tokensPerMinute ?? ""}`,
        `${one.concurrency}`,
        one.perKey ? "1" : "0",
      ]);
      const [outcome, second = ""] = await run(redis, ADMIT, keys, [
        ask.requestId,
        ask.keyHash,
        JSON.stringify(ask.plans),
        JSON.stringify(groups),
        `${ask.inputTokens}`,
        `${ask.holdTtlMs}`,
        ask.again ? "1" : "0",
        `${ACCOUNT_CONCURRENCY_MAX}`,
        "",
      ]);
      return outcome === "admitted" ? admittedOf(ask.tag, JSON.parse(second) as HoldRecord) : second;
    },
    async settleBefore(ask) {
      const account = `{a:${ask.tag}}`;
      const days = ["day", "use"].map((kind) => `${account}:${kind}:${utcDay(ask.admittedAtMs)}`);
      const keys = [account, `${account}:h`, `${account}:hx`, `${account}:d:${ask.requestId}`, `${account}:l`, ...days];
      const { payer, revenue, overHold, absorbed, upstream } = settleAccounts(ask);
      const [outcome = ""] = await run(redis, SETTLE, keys, [
        ask.requestId,
        `${ask.admittedAtMs}`,
        ask.entitlement ?? "",
        `${ask.amount}`,
        `${ask.absorbed}`,
        `${ask.tokensTaken}`,
        `${ask.tokensUsed}`,
        `${ask.tokensPerMinute ?? ""}`,
        ask.voided ? "1" : "0",
        limitScope(ask.group, ask.keyId, ask.perKey),
        payer,
        revenue,
        overHold,
        absorbed,
        upstream,
        ask.group,
        ask.model,
        ask.keyId,
        ask.memo,
        dayField(ask.group, ask.model, ask.keyId),
        `${SETTLE_HORIZON_MS}`,
        `${SETTLED_MARK_MS}`,
        "",
        JSON.stringify(["requests", "1"]),
        "0",
      ]);
      return outcome;
    },
  };
}

/** Runs a script. @returns the texts of its reply, a list of bulk strings. */
async function run(redis: TestRedis, script: string, keys: string[], values: string[]): Promise<string[]> {
  const reply = await redis.command("EVAL", script, `${keys.length}`, ...keys, ...values);
  assert.match(reply, /^\*/, reply);
  // Each text is on the line after its length; none of them has a line break.
  return [...reply.matchAll(/\$\d+\r\n([^\r]*)\r\n/g)].map((match) => match[1] as string);
}

test("a request admitted by either version is settled by the other, once, and a repeated admission gets the same answer", async (t) => {
  const { store, admitBefore, settleBefore } = await fleet(t);
  const tag = await makeAccount(store, "Mixed", { funds: 1_000n });
  const asks = [1, 2].map((number) => admitAsk({ tag, requestId: ridOf(number), groups: GROUPS, inputTokens: 50 })) as [
    AdmitAsk,
    AdmitAsk,
  ];
  const before = await admitBefore(asks[0]);
  assert.ok(typeof before === "object", String(before));
  const now = admitted(await store.admit(asks[1]));
  assert.deepEqual(await store.admit(asks[0]), before, "the current version reads the previous version's hold");
  assert.deepEqual(await admitBefore(asks[1]), now, "and the previous version the current one's");
  assert.equal(now.limits.requests?.remaining, 58, "both take from one bucket");
  assert.equal((await store.getAccount(tag))?.held, 200n);

  const charge = { amount: 30n, tokensTaken: 50, tokensUsed: 40 };
  const [first, second] = [settleAsk(asks[0], before, charge), settleAsk(asks[1], now, charge)];
  assert.equal((await store.settle(first)).outcome, "settled");
  assert.equal(await settleBefore(second), "settled");
  assert.equal(await settleBefore(first), "duplicate");
  assert.equal((await store.settle(second)).outcome, "duplicate");
  assert.equal((await store.settle(settleAsk(asks[1], now, { ...charge, amount: 31n }))).outcome, "mismatch");

  const state = await store.inspect(tag);
  assert.deepEqual([state?.account.balance, state?.account.held, state?.inFlight], [940n, 0n, 0]);
  const audit = await auditToEnd(auditAccount(store, { name: state?.account.name ?? "", tag }));
  // These charges have no memo to be recomputed from, and the previous version counted no requests; numbers, balances and sums
  // are as they should be.
  assert.deepEqual(
    audit.findings.filter(({ check }) => check !== "charge" && check !== "day_counts"),
    [],
  );
  const days = await store.readDays(tag, utcDay(now.storeTimeMs), utcDay(now.storeTimeMs));
  assert.deepEqual(
    days.map(({ amount }) => amount),
    [60n],
    "money of both, though only the current version counts requests and tokens",
  );
});

test("both versions count the same requests in flight, and a request voided by one is not admitted by the other", async (t) => {
  const { store, admitBefore, settleBefore } = await fleet(t);
  const tag = await makeAccount(store, "MixedFull", { funds: 1_000n });
  const askOf = (number: number) => admitAsk({ tag, requestId: ridOf(number), groups: GROUPS });
  const before = await admitBefore(askOf(1));
  assert.ok(typeof before === "object");
  admitted(await store.admit(askOf(2)));
  admitted(await store.admit(askOf(3)));
  assert.equal(await admitBefore(askOf(4)), "concurrency");
  const refused = await store.admit(askOf(5));
  assert.equal(refused.outcome === "refused" && refused.cause, "concurrency");
  assert.equal(await settleBefore(settleAsk(askOf(1), before, { voided: true })), "settled");
  admitted(await store.admit(askOf(6)));
  // Voided by the current version before the previous one's admission arrives, which then holds nothing.
  await store.settle(settleAsk(askOf(7), before, { voided: true }));
  assert.equal(await admitBefore(askOf(7)), "concurrency");
  assert.equal((await store.inspect(tag))?.inFlight, 3);
});

test("a suspended key is refused by the previous version too, and a resumed one is admitted", async (t) => {
  const { store, admitBefore } = await fleet(t);
  const tag = await makeAccount(store, "Paused");
  const ask = (number: number) => admitBefore(admitAsk({ tag, requestId: ridOf(number), groups: GROUPS }));
  await store.changeKey(tag, "key_Paused", { status: "suspended", name: "Laptop" });
  assert.equal(await ask(1), "revoked_key");
  await store.changeKey(tag, "key_Paused", { status: "normal" });
  assert.equal(typeof (await ask(2)), "object");
});

test("cards and codes of either version work in the other, but the previous one ignores the expiry and the kind of a code", async (t) => {
  const { redis, store, admitBefore, settleBefore } = await fleet(t);
  const tag = await makeAccount(store, "MixedCards", { group: "cards" });
  const facts = { card: "day", plan: "pro", group: "cards", lastsMs: 3_600_000, quota: nanoUsd(500n) } as const;
  await store.grant(tag, { ...facts, id: "today", afterPrevious: false, reference: "today", gift: true });
  const ask = admitAsk({ tag, requestId: ridOf(1), plans: ["pro"], groups: [cardTerms()] });
  const before = await admitBefore(ask);
  assert.ok(typeof before === "object", String(before));
  assert.equal(before.entitlement, "today");
  assert.equal(await settleBefore(settleAsk(ask, before, { amount: 30n })), "settled");
  const given = ["before", "pro", "cards", "3600000", "0", "500", "before", "ent_before", "1000", "cards:day", ""];
  await run(redis, sourceOf("grant"), [`{a:${tag}}`, `{a:${tag}}:l`], given);
  const cards = (await store.listCards(tag))?.cards.map(({ id, card, spent }) => [id, card, spent]);
  assert.deepEqual(cards, [
    ["today", "day", 30n],
    ["before", undefined, 0n],
  ]);

  const code = { id: "late", hash: codeHashOf("late") };
  const made = { ...facts, starts: "at_redemption", batch: "batch1", expiresAtMs: 1 } as const;
  await store.createCodes(made, [code], { label: "fair", count: 1 });
  assert.deepEqual(await store.redeem({ hash: code.hash, tag }), { outcome: "expired" });
  const [claimed, id, kind] = await run(redis, sourceOf("code-claim"), [`c:${code.hash}`], [tag]);
  assert.deepEqual(
    [claimed, id, kind],
    ["1", "late", "day"],
    "a code of the current version can be redeemed by the previous one",
  );
  const redeemed = await store.redeem({ hash: code.hash, tag });
  assert.ok(redeemed.outcome === "again");
  assert.deepEqual([redeemed.entitlement.card, redeemed.code.batch], ["day", "batch1"]);

  const old = { id: "old", hash: codeHashOf("old") };
  await store.createCodes({ ...facts, starts: "at_redemption" }, [old]);
  await redis.command("HDEL", `c:${old.hash}`, "expires", "batch");
  const { batch, expiresAtMs } = (await store.getCode("old")) ?? assert.fail();
  assert.deepEqual([batch, expiresAtMs], [undefined, undefined]);
  assert.equal((await store.redeem({ hash: old.hash, tag })).outcome, "redeemed", "a code from before batches");
});

test("a closed account's keys are refused by the previous version too, those of a suspended account are not", async (t) => {
  const { store, admitBefore } = await fleet(t);
  const [closed, paused] = [await makeAccount(store, "Closed"), await makeAccount(store, "Waits")];
  await store.closeAccount(closed);
  assert.equal(await admitBefore(admitAsk({ tag: closed, requestId: ridOf(1), groups: GROUPS })), "revoked_key");
  // docs/fronts.md says to suspend accounts only when the upgrade is complete.
  await store.changeAccount(paused, { status: "suspended" });
  assert.equal(typeof (await admitBefore(admitAsk({ tag: paused, requestId: ridOf(2), groups: GROUPS }))), "object");
});

test("a stopped script of the current version, overtaken by the previous version, is finished without a loss", async (t) => {
  const { redis, store, admitBefore, settleBefore } = await fleet(t);
  const stopper = await startScriptStopper(redis.port, Object.values(loadScripts()));
  t.after(() => stopper.close());
  const stopped = await openStore({ kind: "redis", url: new Secret(stopper.url) }, PATIENT);
  t.after(() => stopped.close());
  const charge = { amount: 30n, tokensTaken: 50, tokensUsed: 40, memo: "{}" };
  const attempts = [{ upstream: "east", cause: "upstream_timeout", amount: nanoUsd(3n), memo: "{}" }];
  let overtaken = 0;
  let [command, second] = [1, 1];
  for (let round = 1; ; round++) {
    const tag = await makeAccount(store, `Over${round}x`, { funds: 1_000n });
    const askOf = (number: number) => admitAsk({ tag, requestId: ridOf(number), groups: GROUPS, inputTokens: 50 });
    const [ours, theirs] = [admitted(await store.admit(askOf(1))), await admitBefore(askOf(2))];
    assert.ok(typeof theirs === "object", String(theirs));
    stopper.stopAt("settle", command);
    const asked = settleAsk(askOf(1), ours, { ...charge, attempts });
    const first = await stopped.settle(asked).catch(() => undefined);
    const stop = stopper.goOn();
    if (stop === undefined) break;
    assert.equal(first, undefined);
    // The previous version admits and charges, and writes lines with numbers after those still missing.
    assert.equal(await settleBefore(settleAsk(askOf(2), theirs, charge)), "settled", stop);
    // The script that finishes the stopped one stops as well.
    stopper.stopAt("settle", second);
    await stopped.settle(asked).catch(() => undefined);
    const then = stopper.goOn();
    const at = `${stop}, then ${then}`;
    [command, second] = then === undefined ? [command + 1, 1] : [command, second + 1];
    const third = await admitBefore(askOf(3));
    assert.ok(typeof third === "object", at);
    assert.match((await stopped.settle(asked)).outcome, /^(settled|duplicate)$/, at);
    assert.equal((await stopped.settle(asked)).outcome, "duplicate", at);
    assert.equal((await stopped.settle(settleAsk(askOf(3), third, charge))).outcome, "settled", at);

    const state = await store.inspect(tag);
    assert.ok(state);
    assert.deepEqual(
      [state.account.balance, state.account.spent, state.account.held, state.inFlight],
      [910n, 90n, 0n, 0],
      at,
    );
    assert.deepEqual([state.holds, state.inFlightByScope], [[], {}], at);
    const lines = state.ledger
      .slice(1)
      .map(({ kind, reference, amount }) => `${Number.parseInt(reference, 16)} ${kind} ${amount}`);
    assert.deepEqual(lines.sort(), ["1 absorbed 3", "1 usage 30", "2 usage 30", "3 usage 30"], at);
    // An overtaken line has the balance at the time when it is written, and the mark names the line.
    const balances = state.ledger.slice(1).map(({ balance }) => Number(balance));
    assert.deepEqual(
      balances,
      balances.toSorted((one, other) => other - one),
      at,
    );
    const mark = await redis.command("GET", `{a:${tag}}:d:${ridOf(1)}`);
    const named = Number((JSON.parse(mark.slice(mark.indexOf("["))) as string[])[2]);
    assert.equal(state.ledger.find(({ seq }) => seq === named)?.reference, ridOf(1), at);
    const day = utcDay(ours.storeTimeMs);
    assert.deepEqual(Object.values(state.days[day] ?? {}), [90n], at);
    assert.deepEqual(
      Object.values(state.counts[day] ?? {}).map(({ requests }) => requests),
      [3],
      at,
    );
    if (lines.join() !== lines.sort().join() || state.seq > 5) overtaken++;
  }
  assert.ok(overtaken > 0, "lines were overtaken at all");
});

test("a counter of requests in flight that is at zero and raised again by the previous version is kept", async (t) => {
  const { redis, store, admitBefore } = await fleet(t);
  const stopper = await startScriptStopper(redis.port, Object.values(loadScripts()));
  t.after(() => stopper.close());
  const stopped = await openStore({ kind: "redis", url: new Secret(stopper.url) }, PATIENT);
  t.after(() => stopped.close());
  for (let command = 1; ; command++) {
    const tag = await makeAccount(store, `Zero${command}x`);
    const askOf = (number: number) => admitAsk({ tag, requestId: ridOf(number), groups: GROUPS });
    const asked = settleAsk(askOf(1), admitted(await store.admit(askOf(1))), { amount: 30n });
    stopper.stopAt("settle", command);
    await stopped.settle(asked).catch(() => undefined);
    const stop = stopper.goOn();
    if (stop === undefined) {
      assert.ok(command > 3, "it stopped");
      return;
    }
    assert.equal(typeof (await admitBefore(askOf(2))), "object", stop);
    assert.match((await stopped.settle(asked)).outcome, /^(settled|duplicate)$/, stop);
    const state = await store.inspect(tag);
    assert.deepEqual([state?.inFlight, state?.inFlightByScope], [1, { big: 1 }], stop);
  }
});
