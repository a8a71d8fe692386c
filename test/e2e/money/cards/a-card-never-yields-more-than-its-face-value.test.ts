// A month of random redemptions, requests, renewals and clock jumps (docs/failure-model.md invariant 12): no card ever
// pays more than its quota, nor outside its period, nor before another that ends earlier.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AdmitAsk, Admitted } from "../../../../src/store/admission.ts";
import type { Store } from "../../../../src/store/contract.ts";
import type { AccountState, CardFacts, Entitlement } from "../../../../src/store/records.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { admitAsk, cardTerms, codeHashOf, makeAccount, ridOf, settleAsk, terms } from "../../../unit/store/asks.ts";
import { embeddedBench, redisBench } from "../../../unit/store/benches.ts";
import type { Bench } from "../../../unit/store/contract.ts";
import { assertIdentities } from "../../../unit/store/contract-settle.ts";
import { card, DAY_MS } from "./rig.ts";

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 2, 28, 14);
const PLANS = ["pro"];

const amount = fc.bigInt(0n, 120n);
const operation = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("redeem" as const),
      days: fc.constantFrom(1, 7, 30),
      starts: fc.constantFrom("at_redemption" as const, "after_previous" as const),
      plan: fc.constantFrom("pro", "pro", "other"),
      quota: fc.option(fc.bigInt(1n, 300n), { nil: undefined, freq: 8 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("redeemAgain" as const), which: fc.nat(20) }) },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("admit" as const),
      least: amount,
      more: amount,
      ttlMs: fc.constantFrom(60_000, HOUR_MS, 40 * HOUR_MS),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      which: fc.nat(20),
      /** Below, at or above the hold: an estimate may be wrong in both directions. */
      amount: fc.bigInt(0n, 400n),
      voided: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("settleAgain" as const), which: fc.nat(20) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("jump" as const),
      byMs: fc.oneof(
        fc.integer({ min: 1, max: 2 * DAY_MS }),
        fc.constantFrom(HOUR_MS, 12 * HOUR_MS, DAY_MS, DAY_MS - 1, 10 * HOUR_MS, 7 * DAY_MS),
        fc.integer({ min: -3 * HOUR_MS, max: -1 }),
      ),
    }),
  },
);

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** One account's month: what was redeemed, what was admitted, and what the store must never do. */
class Month {
  readonly #bench: Bench;
  readonly #name: string;
  readonly #codes: { id: string; facts: CardFacts }[] = [];
  readonly #permits: { ask: AdmitAsk; permit: Admitted; settled?: bigint }[] = [];
  #tag = "" as AccountTag;
  #requests = 0;

  constructor(bench: Bench, number: number) {
    this.#bench = bench;
    this.#name = `M${number}x`;
  }

  get #store(): Store {
    return this.#bench.store;
  }

  async begin(): Promise<void> {
    this.#bench.setTime(START_MS);
    this.#tag = await makeAccount(this.#store, this.#name, { group: "cards", funds: 1_000n });
  }

  async step(o: Operation): Promise<void> {
    switch (o.do) {
      case "redeem":
        await this.#redeem(card({ lastsMs: o.days * DAY_MS, starts: o.starts, plan: o.plan, quota: o.quota }));
        break;
      case "redeemAgain": {
        const code = this.#codes[o.which % Math.max(1, this.#codes.length)];
        if (code)
          assert.equal((await this.#store.redeem({ hash: codeHashOf(code.id), tag: this.#tag })).outcome, "again");
        break;
      }
      case "admit":
        await this.#admit(o.least, o.least + o.more, o.ttlMs);
        break;
      case "settle":
      case "settleAgain":
        await this.#settle(o);
        break;
      case "jump":
        this.#bench.setTime(Math.max(START_MS, this.#bench.nowMs() + o.byMs));
    }
    this.#assertFaceValues(await this.#state());
  }

  async #state(): Promise<AccountState> {
    return (await this.#store.inspect(this.#tag)) ?? assert.fail();
  }

  async #redeem(facts: CardFacts): Promise<void> {
    const id = `${this.#name}-${this.#codes.length}`;
    const before = await this.#state();
    await this.#store.createCodes(facts, [{ id, hash: codeHashOf(id) }]);
    const answer = await this.#store.redeem({ hash: codeHashOf(id), tag: this.#tag });
    assert.ok(answer.outcome === "redeemed");
    const { fromMs, untilMs } = answer.entitlement;
    assert.equal(untilMs - fromMs, facts.lastsMs);
    const last = Math.max(this.#bench.nowMs(), ...before.entitlements.map((e) => e.untilMs));
    assert.equal(fromMs, facts.starts === "after_previous" ? last : this.#bench.nowMs());
    this.#codes.push({ id, facts });
  }

  async #admit(least: bigint, full: bigint, holdTtlMs: number): Promise<void> {
    const ask = admitAsk({
      tag: this.#tag,
      requestId: ridOf(++this.#requests),
      plans: PLANS,
      groups: [cardTerms({ holdMin: least, holdFull: full }), terms()],
      holdTtlMs,
    });
    // An admission releases expired holds first. An admission that is certain to be refused does this without any other
    // effect.
    for (let i = 0; i < 3; i++) {
      await this.#store.admit({ ...ask, requestId: ridOf(1_000_000 + this.#requests), groups: [] });
    }
    const nowMs = this.#bench.nowMs();
    const payers = (await this.#state()).entitlements
      .filter((e) => e.group === "cards" && PLANS.includes(e.plan) && e.fromMs <= nowMs && nowMs < e.untilMs)
      .filter((e) => e.quota === undefined || e.quota - e.spent - e.held >= least)
      .sort((a, b) => a.untilMs - b.untilMs || a.fromMs - b.fromMs || (a.id < b.id ? -1 : 1));
    const answer = await this.#store.admit(ask);
    if (answer.outcome === "refused") {
      assert.ok(["no_entitlement", "not_in_plan", "quota_used", "concurrency"].includes(answer.cause), answer.cause);
      assert.ok(payers.length === 0 || answer.cause === "concurrency", "a card that could pay is not passed over");
      return;
    }
    assert.equal(answer.entitlement, payers[0]?.id, "the running card that ends first pays");
    assert.ok(answer.hold >= 0n && answer.hold <= full);
    assert.equal(answer.unmetered, payers[0]?.quota === undefined);
    this.#permits.push({ ask, permit: answer });
  }

  async #settle(o: Extract<Operation, { do: "settle" | "settleAgain" }>): Promise<void> {
    const one = this.#permits[o.which % Math.max(1, this.#permits.length)];
    if (one === undefined) return;
    const owed = one.settled ?? (o.do === "settle" && !o.voided ? o.amount : 0n);
    const voided = o.do === "settle" && o.voided;
    const answer = await this.#store.settle(
      settleAsk(one.ask, one.permit, { amount: voided ? 0n : owed, voided, model: "big-1" }),
    );
    if (answer.outcome !== "settled") return;
    assert.ok(one.settled === undefined, "each request is settled once");
    assert.equal(answer.charged + answer.absorbed, one.permit.unmetered || voided ? 0n : owed);
    one.settled = voided ? 0n : owed;
  }

  #assertFaceValues(state: AccountState): void {
    assertIdentities(state);
    assert.equal(state.account.balance, 1_000n, "requests paid by a card never change the balance");
    assert.deepEqual(state.entitlements.map((e) => e.id).sort(), this.#codes.map(({ id }) => id).sort());
    for (const { id, facts } of this.#codes) {
      const e = state.entitlements.find((one) => one.id === id) as Entitlement;
      assert.deepEqual(
        [e.quota, e.untilMs - e.fromMs],
        [facts.quota, facts.lastsMs],
        "the quota and the duration of a card never change",
      );
      const lines = state.ledger.filter((line) => line.debit === `ent_${id}` || line.credit === `ent_${id}`);
      const sum = (side: "debit" | "credit") =>
        lines.filter((line) => line[side] === `ent_${id}`).reduce((total, line) => total + line.amount, 0n);
      assert.equal(sum("credit"), facts.quota ?? 0n, "the credits of the card are its face value");
      assert.equal(sum("debit"), e.spent, "what was spent is in the ledger");
      assert.ok(e.spent + e.held <= (facts.quota ?? 0n), `${id} yields more than its face value`);
    }
  }
}

async function live(bench: Bench, runs: number, steps: number, fresh: () => Promise<void>): Promise<void> {
  let number = 0;
  const month = fc.asyncProperty(
    fc.array(operation, { minLength: 10, maxLength: steps, size: "max" }),
    async (operations) => {
      await fresh();
      const one = new Month(bench, ++number);
      await one.begin();
      for (const o of operations) await one.step(o);
    },
  );
  try {
    await fc.assert(month, { numRuns: runs });
  } finally {
    await bench.close();
  }
}

const RUNS = Number(process.env.CARD_RUNS ?? 150);

test("a random month on the embedded store with a controlled clock", async () => {
  await live(await embeddedBench(), RUNS, 100, async () => undefined);
});

test("a random month on Redis in real time", async () => {
  const bench = await redisBench();
  await live(bench, Math.ceil(RUNS / 6), 60, async () => void (await bench.redis.command("FLUSHALL")));
});
