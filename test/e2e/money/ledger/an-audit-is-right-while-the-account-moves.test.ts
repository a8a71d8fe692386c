/**
 * An audit goes in steps, and the account changes between them: requests are admitted, charged and voided, funds and
 * cards are added, lines move into the archive, the clock jumps (docs/failure-model.md row E1). The audit still reports
 * nothing that is right and misses nothing that is wrong; on both stores.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { after, before, describe } from "node:test";
import fc from "fast-check";
import type { Admitted } from "../../../../src/store/admission.ts";
import type { Store } from "../../../../src/store/contract.ts";
import { type AccountAudit, auditAccount } from "../../../../src/store/ledger/audit.ts";
import { accountId } from "../../../../src/store/names.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import {
  admitAsk,
  cardTerms,
  DAY_MS,
  hashOf,
  memoOf,
  ridOf,
  settleAsk,
  tagOf,
  terms,
} from "../../../unit/store/asks.ts";
import { embeddedBench, redisBench } from "../../../unit/store/benches.ts";
import type { Bench } from "../../../unit/store/contract.ts";
import { archiveThrough } from "../../../unit/store/contract-archive.ts";

const RUNS = Number(process.env.AUDIT_RUNS ?? 10);
/**
 * Clock jumps are tried between the audit's own steps, which do not depend on the store; the embedded store is five
 * times as fast.
 */
const JUMPS = { redis: RUNS, embedded: 5 * RUNS };
/** More than the audit reads at a time. */
const LINES_BEFORE = 230;
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 5, 1, 12);

const ops = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("admit" as const), card: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("settle" as const), tokens: fc.integer({ min: 0, max: 120 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("void" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("credit" as const), amount: fc.constantFrom(500n, -3n) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("grant" as const), quota: fc.constantFrom(undefined, 300n) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("key" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("archive" as const), lines: fc.integer({ min: 1, max: 90 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("jump" as const), hours: fc.constantFrom(1, 13, 97) }) },
);
type Op = typeof ops extends fc.Arbitrary<infer T> ? T : never;

/** What happens between two steps of the audit; past the end of the list, nothing. */
const traffic = fc.array(fc.array(ops, { maxLength: 4 }), { minLength: 5, maxLength: 60, size: "max" });

class Account {
  readonly tag: AccountTag;
  readonly #bench: Bench;
  #number = 0;
  /** Requests in flight, and whether a card pays for them. */
  readonly #running: { ask: ReturnType<typeof admitAsk>; permit: Admitted }[] = [];

  constructor(bench: Bench, name: string) {
    this.#bench = bench;
    this.tag = tagOf(name);
  }

  get store(): Store {
    return this.#bench.store;
  }

  /** Old lines, a card, and recent lines after them. */
  async begin(): Promise<void> {
    this.#bench.setTime(START_MS);
    const { tag, store } = this;
    await store.createAccount({ tag, name: tag, plan: "free" });
    await store.createKey(tag, { id: `key_${tag}0`, hash: hashOf("money"), group: "big" });
    await store.createKey(tag, { id: `key_${tag}1`, hash: hashOf("cards"), group: "cards" });
    await store.credit(tag, { id: "p", amount: 100_000n, kind: "topup", note: "" });
    await this.do({ do: "grant", quota: 300n });
    for (let at = 0; at < LINES_BEFORE; at++) {
      if (at === LINES_BEFORE - 20) await this.do({ do: "jump", hours: 97 });
      await this.do({ do: "admit", card: at % 9 === 0 });
      await this.do({ do: "settle", tokens: at % 7 });
    }
    await this.do({ do: "grant", quota: 300n });
    await this.do({ do: "admit", card: true });
    await this.do({ do: "admit", card: false });
  }

  async do(op: Op): Promise<void> {
    const { tag, store } = this;
    this.#number += 1;
    switch (op.do) {
      case "admit":
        return this.#admit(op.card);
      case "settle":
        return this.#settle(op.tokens);
      case "void": {
        const request = this.#running.shift();
        if (request) await store.settle(settleAsk(request.ask, request.permit, { voided: true }));
        return;
      }
      case "credit":
        await store.credit(tag, { id: `c${this.#number}`, amount: op.amount, kind: "adjust", note: "" });
        return;
      case "grant": {
        const card = { card: "day", plan: "pro", group: "cards", lastsMs: 60 * DAY_MS, afterPrevious: false };
        const quota = op.quota === undefined ? undefined : nanoUsd(op.quota);
        await store.grant(tag, { ...card, id: `card${this.#number}`, quota, reference: "given" });
        return;
      }
      case "key":
        await store.createKey(tag, { id: `key${this.#number}`, hash: hashOf(`${this.#number}`), group: "big" });
        return;
      case "archive": {
        const [head] = await store.readLedger(tag, 0, 1);
        const from = head?.kind === "opening" ? head.seq : 0;
        await archiveThrough(store, tag, await this.#endOfRequest(from + op.lines)).catch(() => undefined);
        return;
      }
      case "jump":
        this.#bench.setTime(this.#bench.nowMs() + op.hours * HOUR_MS);
    }
  }

  async #admit(card: boolean): Promise<void> {
    const keyHash = hashOf(card ? "cards" : "money");
    const groups = [terms(), cardTerms({ holdFull: 50n })];
    const requestId = ridOf(this.#number);
    const ask = admitAsk({
      tag: this.tag,
      requestId,
      keyHash,
      plans: ["free", "pro"],
      groups,
      holdTtlMs: 20 * HOUR_MS,
    });
    const permit = await this.store.admit(ask);
    if (permit.outcome === "admitted") this.#running.push({ ask, permit });
  }

  async #settle(tokens: number): Promise<void> {
    const request = this.#running.shift();
    if (!request) return;
    const counts = { input: tokens, cachedInput: 0, cacheWrite: 0, output: 1, reasoning: 0 };
    const charge = { amount: BigInt(tokens + 1), memo: memoOf(tokens, 1), tokens: counts, model: `m${tokens % 3}` };
    const kind = request.permit.entitlement === undefined ? ("pay_per_use" as const) : ("time_card" as const);
    const lost = tokens % 5 === 0 ? { absorbed: 3n, absorbedCause: "client_gone", upstream: "east" } : {};
    const ask = settleAsk(request.ask, request.permit, { ...charge, kind });
    // The cost of an attempt in addition to the charge is a line with its own memo.
    const attempts = lost.absorbed
      ? [{ upstream: "east", cause: "client_gone", amount: nanoUsd(3n), memo: memoOf(2, 1) }]
      : [];
    await this.store.settle({ ...ask, attempts });
  }

  async #endOfRequest(seq: number): Promise<number> {
    const lines = await this.store.readLedger(this.tag, seq - 1, 3);
    let end = seq;
    for (let at = 1; at < lines.length && lines[at]?.reference === lines[at - 1]?.reference; at++) end += 1;
    return end;
  }
}

/** Audits an account and runs one of the actions between every two steps. */
async function audited(account: Account, between: readonly (readonly Op[])[]): Promise<AccountAudit> {
  const steps = auditAccount(account.store, { name: account.tag, tag: account.tag });
  for (let at = 0; ; at++) {
    const step = await steps.next();
    if (step.done) return step.value;
    assert.equal(step.value.error, undefined);
    for (const op of between[at] ?? []) await account.do(op);
  }
}

const checksOf = ({ findings }: AccountAudit) => [...new Set(findings.map(({ check }) => check))].sort();

/** Properties of one store. `damages` lists each way in which it can be wrong, and the check that must report it. */
function auditsMovingAccounts(
  jumpRuns: number,
  open: () => Promise<{ bench: Bench; damages: Readonly<Record<string, (tag: AccountTag) => Promise<void> | void>> }>,
): void {
  let opened: Awaited<ReturnType<typeof open>>;
  let runs = 0;
  before(async () => {
    opened = await open();
  });
  after(() => opened.bench.close());

  const begun = async (): Promise<Account> => {
    runs += 1;
    const account = new Account(opened.bench, `A${runs}x`);
    await account.begin();
    return account;
  };

  test("an audit reports nothing if all is right, whatever happens in the meantime", async () => {
    await fc.assert(
      fc.asyncProperty(traffic, async (between) => {
        const account = await begun();
        const audit = await audited(account, between);
        assert.deepEqual(audit.findings, []);
        assert.deepEqual([audit.outcome, audit.skipped], ["balanced", []]);
        assert.equal(audit.balance, audit.account?.balance);
        assert.deepEqual((await audited(account, [])).findings, []);
      }),
      // Shrinking a failure could exceed the time limit of the run.
      { numRuns: RUNS, endOnFailure: true },
    );
  });

  test("a clock jump in each of two passes does not make the audit report anything that is right", async () => {
    const jumps = fc.uniqueArray(fc.nat(25), { minLength: 2, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(jumps, async (steps) => {
        const account = await begun();
        const between: Op[][] = Array.from({ length: 26 }, () => []);
        const charge: Op[] = [
          { do: "void" },
          { do: "void" },
          { do: "admit", card: false },
          { do: "settle", tokens: 50 },
        ];
        for (const step of steps) between[step]?.push({ do: "jump", hours: 97 }, ...charge);
        assert.deepEqual((await audited(account, between)).findings, []);
      }),
      { numRuns: jumpRuns, endOnFailure: true },
    );
  });

  test("an audit misses nothing that is wrong, whatever happens in the meantime", async () => {
    const names = Object.keys(opened.damages);
    await fc.assert(
      fc.asyncProperty(traffic, async (between) => {
        const name = names[runs % names.length] as string;
        const account = await begun();
        await opened.damages[name]?.(account.tag);
        // Archiving and the expiry of marks repair some damage: it is found before that.
        const calm = between.map((some) => some.filter((op) => op.do !== "archive" && op.do !== "jump"));
        const audit = await audited(account, calm);
        // A line written in the meantime has a balance that does not follow from the lines before it.
        const checks = checksOf(audit).filter((check) => name !== "balance" || check !== "line_balance");
        assert.deepEqual(checks, name.split(" ").sort(), accountId(account.tag));
      }),
      { numRuns: Math.max(RUNS, names.length), endOnFailure: true },
    );
  });
}

const today = (bench: Bench) => new Date(bench.nowMs()).toISOString().slice(0, 10);

describe("on Redis", () => {
  auditsMovingAccounts(JUMPS.redis, async () => {
    const bench = await redisBench();
    const run = async (...words: string[]) => void assert.match(await bench.redis.command(...words), /^[^-]/);
    const at = (tag: AccountTag, rest = "") => `{a:${tag}}${rest}`;
    const young = async (tag: AccountTag) =>
      (await bench.store.readLedger(tag, 0, 1_000)).filter((l) => l.kind === "usage");
    return {
      bench,
      damages: {
        balance: (tag) => run("HINCRBY", at(tag), "bal", "1"),
        spent: (tag) => run("HINCRBY", at(tag), "spent", "1"),
        topped_up: (tag) => run("HINCRBY", at(tag), "topped", "1"),
        held: (tag) => run("HINCRBY", at(tag), "held", "1"),
        in_flight: (tag) => run("HINCRBY", at(tag), "conc", "1"),
        card_held: (tag) => run("HINCRBY", at(tag), "eh:card1", "1"),
        card_spent: (tag) => run("HINCRBY", at(tag), "ep:card1", "-1"),
        card_missing: (tag) => run("HINCRBY", at(tag), "ep:ghost", "1"),
        day_sums: (tag) => run("HINCRBY", at(tag, `:day:${today(bench)}`), `big|m1|key_${tag}0`, "1"),
        day_counts: (tag) => run("HINCRBY", at(tag, `:use:2026-06-01`), `output|big|m1|key_${tag}0`, "1"),
        settled_mark: async (tag) => run("DEL", at(tag, `:d:${(await young(tag)).at(-1)?.reference}`)),
        payment_count: (tag) => run("HSET", at(tag, ":pay"), "ghost", "1"),
        "payment payment_count": (tag) => run("HDEL", at(tag, ":pay"), "p"),
        key_index: (tag) => run("HDEL", at(tag), `ki:key_${tag}1`),
      },
    };
  });
});

describe("in the embedded store", () => {
  auditsMovingAccounts(JUMPS.embedded, async () => {
    const bench = await embeddedBench();
    const run = (sql: string, tag: AccountTag) => {
      const db = new DatabaseSync(join(bench.dir, "tollgate.db"));
      try {
        assert.equal(db.prepare(sql).run(tag).changes, 1);
      } finally {
        db.close();
      }
    };
    return {
      bench,
      damages: {
        balance: (tag) => run("UPDATE accounts SET bal = bal + 1 WHERE tag = ?", tag),
        spent: (tag) => run("UPDATE accounts SET spent = spent + 1 WHERE tag = ?", tag),
        topped_up: (tag) => run("UPDATE accounts SET topped = topped + 1 WHERE tag = ?", tag),
        card_spent: (tag) => run("UPDATE entitlements SET spent = spent - 1 WHERE tag = ? AND id = 'card1'", tag),
        day_sums: (tag) =>
          run(
            "UPDATE days SET amount = amount + 1 WHERE tag = ? AND field LIKE 'big|m1|%' AND day = '2026-06-01'",
            tag,
          ),
        line_sides: (tag) => run("UPDATE ledger SET credit = 'acct_0000000000' WHERE tag = ? AND seq = 205", tag),
        "payment payment_count": (tag) => run("DELETE FROM payments WHERE tag = ? AND id = 'p'", tag),
      },
    };
  });
});
