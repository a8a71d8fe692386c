/**
 * Random operations on two stores at once: every answer and the whole state are compared while the clock jumps ahead and back.
 */
import assert from "node:assert/strict";
import type { Admitted } from "../../../src/store/admission.ts";
import type { Store } from "../../../src/store/contract.ts";
import { addressBits } from "../../../src/store/limits/address-bits.ts";
import { type LimitSet, limitsText } from "../../../src/store/limits/limits.ts";
import { keyScope } from "../../../src/store/names.ts";
import { SETTLED_MARK_MS, type UpstreamCost } from "../../../src/store/settlement.ts";
import type { SignInKind } from "../../../src/store/sign-ins.ts";
import type { IdempotentRequest } from "../../../src/values/idempotency.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { admitAsk, codeHashOf, DAY_MS, hashOf, ridOf, settleAsk, tagOf } from "./asks.ts";
import type { Bench } from "./contract.ts";
import { archiveThrough } from "./contract-archive.ts";
import { assertIdentities } from "./contract-settle.ts";
import type { Operation } from "./operations.ts";

/** A Sunday: half a day later a day, a week and a month start. */
const START_MS = Date.UTC(2026, 4, 31, 12);

const RATES = { requestsPerMinute: 3, tokensPerMinute: 1_000, concurrency: 2 };

function keyOf(said: { key: string; body: string } | undefined): IdempotentRequest | undefined {
  return said && { key: hashOf(said.key), fingerprint: hashOf(said.key + said.body) };
}

type Costs = NonNullable<Extract<Operation, { do: "settle" }>["costs"]>;

/** With a charge, it is for the first of them. */
function costsOf(costs: Costs, isCharged: boolean): readonly UpstreamCost[] {
  return costs.map(({ absorbedPart, ...cost }, index) => {
    const isPaid = isCharged && index === 0;
    // What the client pays for is not absorbed, but a failed try at the same upstream may be.
    const absorbed = (cost.cost * absorbedPart) / (isPaid ? 8n : 4n);
    return { ...cost, cost: nanoUsd(cost.cost), absorbed: nanoUsd(absorbed), charged: isPaid };
  });
}

/** One sequence of operations: its accounts, the admitted requests, and the clock that both stores share. */
export class Run {
  readonly #tags: readonly AccountTag[];
  readonly #name: string;
  readonly #benches: readonly Bench[];
  readonly #admitted = new Map<string, Admitted>();
  /** The idempotency key of each admitted request. */
  readonly #keyed = new Map<string, IdempotentRequest>();
  /** When marks and keys expire. */
  readonly #markExpiries: number[] = [];
  #nowMs = START_MS;
  #latestMs = START_MS;
  /** Whether other operations run while a settlement waits for its commit. */
  readonly #goesOn: boolean;
  /** Settlements that wait for their commit. */
  #waiting: Promise<unknown>[] = [];

  constructor(number: number, benches: readonly Bench[], { goesOn = false } = {}) {
    this.#goesOn = goesOn;
    this.#name = `D${String(number).padStart(6, "0")}x`;
    this.#tags = [tagOf(`${this.#name}a`), tagOf(`${this.#name}b`)];
    this.#benches = benches;
  }

  async begin(): Promise<void> {
    this.#setTime(START_MS);
    // The embedded store keeps the records of earlier runs, some of which never expire.
    for (const kind of ["link", "passkey", "session"] as const) {
      for (const { store } of this.#benches) await store.dropSignIns("operator", kind);
    }
    for (const tag of this.#tags) {
      await this.#both((store) => store.createAccount({ tag, name: tag, plan: "free" }));
      await this.#both((store) => store.createKey(tag, { id: `key_${tag}0`, hash: hashOf("0"), group: "big" }));
      await this.#both((store) => store.createKey(tag, { id: `key_${tag}1`, hash: hashOf("1"), group: "cards" }));
      const [budget, rates] = [limitsText({ budgets: { day: nanoUsd(250n), week: nanoUsd(400n) } }), limitsText(RATES)];
      await this.#both((store) => store.changeKey(tag, `key_${tag}0`, { limits: budget }));
      await this.#both((store) => store.changeKey(tag, `key_${tag}1`, { caps: rates }));
      await this.#both((store) => store.credit(tag, { id: "p0", amount: 1_000n, kind: "topup", note: "" }));
      const card = {
        id: "c0",
        card: "day",
        plan: "pro",
        group: "cards",
        lastsMs: 2 * DAY_MS,
        afterPrevious: false,
        reference: "",
      };
      await this.#both((store) => store.grant(tag, { ...card, quota: nanoUsd(300n) }));
    }
  }

  async step(operation: Operation): Promise<void> {
    if (operation.do === "jump") this.#jump(operation.byMs);
    else await this.#apply(this.#tags[operation.account] as AccountTag, operation);
    if (!this.#goesOn) await this.look();
  }

  /** Compares the whole state. */
  async look(): Promise<void> {
    for (const tag of this.#tags) {
      const state = await this.#both((store) => store.inspect(tag));
      assert.ok(state);
      assertIdentities(state);
    }
  }

  /** Awaits and compares the answers of waiting settlements. */
  async answered(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    await Promise.all(waiting);
  }

  /** Closes an account, and then tries half of the operations again. */
  async end(operations: readonly Operation[]): Promise<void> {
    await this.step({ do: "close", account: 0, replayedFromMs: undefined });
    for (const operation of operations.filter((_, at) => at % 2 === 0)) await this.step(operation);
  }

  async #apply(tag: AccountTag, o: Exclude<Operation, { do: "jump" }>): Promise<void> {
    switch (o.do) {
      case "admit":
        return this.#admit(tag, o);
      case "extend":
        await this.#both((store) => store.extend({ tag, requestId: ridOf(o.rid), target: nanoUsd(o.target) }));
        return;
      case "settle":
        return this.#settle(tag, o);
      case "credit":
        await this.#both((store) =>
          store.credit(tag, { id: o.id, amount: o.amount, kind: o.kind, note: "n", again: o.again }),
        );
        return;
      case "grant":
        await this.#both((store) =>
          store.grant(tag, { ...o, card: "day", quota: o.quota as never, reference: "code" }),
        );
        return;
      case "createCodes": {
        const { codes, endsInMs, batch: number, label, do: _, account: __, ...worth } = o;
        const made = codes.map((number) => ({ id: this.#codeId(number), hash: codeHashOf(this.#codeId(number)) }));
        const expiresAtMs = endsInMs === undefined ? undefined : this.#nowMs + endsInMs;
        const batch = number === undefined ? undefined : this.#batchId(number);
        const facts = { ...worth, quota: worth.quota as never, expiresAtMs, batch };
        const named = batch === undefined || label === undefined ? undefined : { label, count: codes.length };
        await this.#both((store) => store.createCodes(facts, made, named));
        return;
      }
      case "redeem": {
        const fromMs = o.fromMs === undefined ? undefined : this.#nowMs + o.fromMs;
        await this.#both((store) => store.redeem({ hash: codeHashOf(this.#codeId(o.code)), tag, fromMs }));
        await this.#both((store) => store.finishClaims(10));
        await this.#both((store) => store.listCards(tag));
        await this.#both((store) => store.listCards(tag, true));
        return;
      }
      case "voidCodes":
        await this.#both((store) => store.voidCodes([...o.codes, 9].map((number) => this.#codeId(number))));
        return;
      case "readBatch": {
        const batch = this.#batchId(o.batch ?? 9);
        let cursor: string | undefined;
        do {
          const from = cursor;
          ({ next: cursor } = await this.#both((store) => store.listBatchCodes(batch, from, o.size)));
        } while (cursor !== undefined);
        await this.#both((store) => store.getBatch(batch));
        await this.#both((store) => store.listBatches(this.#name, o.size));
        return;
      }
      case "archive":
        await this.#both(async (store) => {
          const [head] = await store.readLedger(tag, 0, 1);
          const archived = head?.kind === "opening" ? head.seq : 0;
          return head && o.through > archived ? archiveThrough(store, tag, o.through) : "nothing to archive";
        });
        return;
      case "voidCode":
        await this.#both((store) => store.voidCode(this.#codeId(o.code)));
        return;
      case "keyGroup":
        await this.#both((store) => store.changeKey(tag, `key_${tag}${o.key}`, { group: o.group }));
        return;
      case "keyState": {
        const revision = o.replayedFromMs === undefined ? undefined : this.#nowMs + o.replayedFromMs;
        const { endsInMs, ...change } = o.change;
        const expiresAtMs = typeof endsInMs === "number" ? this.#nowMs + endsInMs : endsInMs;
        const whole = expiresAtMs === undefined ? change : { ...change, expiresAtMs };
        await this.#both((store) => store.changeKey(tag, `key_${tag}${o.key}`, whole, revision));
        return;
      }
      case "rotate": {
        const revision = o.replayedFromMs === undefined ? undefined : this.#nowMs + o.replayedFromMs;
        const hash = hashOf(`${o.key} ${o.value}`);
        const rotation =
          revision === undefined ? { hash, overlapMs: o.overlapMs } : { hash, untilMs: revision + o.overlapMs };
        await this.#both((store) => store.rotateKey(tag, `key_${tag}${o.key}`, rotation, revision));
        return;
      }
      case "byOldValue":
        await this.#both((store) => store.readKey(tag, hashOf(`${o.key} ${o.value}`)));
        return;
      case "keyLimits": {
        const revision = o.replayedFromMs === undefined ? undefined : this.#nowMs + o.replayedFromMs;
        const change = { [o.which]: limitsText(o.limits) };
        await this.#both((store) => store.changeKey(tag, `key_${tag}${o.key}`, change, revision));
        return;
      }
      case "accountLimits": {
        const revision = o.replayedFromMs === undefined ? undefined : this.#nowMs + o.replayedFromMs;
        await this.#both((store) => store.setAccountLimits(tag, limitsText(o.limits as LimitSet), revision));
        return;
      }
      case "revoke":
        await this.#both((store) => store.revokeKey(tag, `key_${tag}${o.key}`));
        return;
      case "createKey":
        await this.#both((store) =>
          store.createKey(tag, { id: `key_${tag}${o.key}`, hash: hashOf(`${o.key}`), group: o.group }),
        );
        return;
      case "notify": {
        const revision = o.replayedFromMs === undefined ? undefined : this.#nowMs + o.replayedFromMs;
        await this.#both((store) => store.setNotifyBelow(tag, o.below, revision));
        return;
      }
      case "takeNotice":
        await this.#both((store) => store.takeNotice(tag, o.seq));
        await this.#both((store) => store.readNotices(tag, 3));
        return;
      case "plan":
        await this.#both((store) => store.setPlan(tag, o.plan));
        return;
      case "accountState": {
        const revision = o.replayedFromMs === undefined ? undefined : this.#nowMs + o.replayedFromMs;
        await this.#both((store) => store.changeAccount(tag, o.change, revision));
        return;
      }
      case "rename": {
        const revision = o.replayedFromMs === undefined ? undefined : this.#nowMs + o.replayedFromMs;
        // The embedded store keeps the accounts of earlier runs.
        const name = `${this.#name}${o.to}`;
        await this.#both((store) => store.renameAccount(tag, name, revision));
        await this.#both((store) => store.findAccount(name));
        await this.#both((store) => store.listAccountNames(this.#name, 3));
        return;
      }
      case "close": {
        const revision = o.replayedFromMs === undefined ? undefined : this.#nowMs + o.replayedFromMs;
        await this.#both((store) => store.closeAccount(tag, revision));
        return;
      }
      case "keepSignIn":
        await this.#keepSignIns(tag, o);
        return this.#readSignIns(tag, o);
      case "takeSignIn": {
        const owner = o.operator ? "operator" : tag;
        await this.#both((store) => store.takeSignIn(owner, o.kind, o.id));
        return this.#readSignIns(tag, o);
      }
      case "dropSignIn": {
        const owner = o.operator ? "operator" : tag;
        const keptByMs = o.keptFromMs === undefined ? undefined : this.#nowMs + o.keptFromMs;
        await this.#both((store) => store.dropSignIn(owner, o.kind, o.id, keptByMs));
        return this.#readSignIns(tag, o);
      }
      case "dropSignIns":
        await this.#both((store) => store.dropSignIns(o.operator ? "operator" : tag, o.kind));
        return this.#readSignIns(tag, o);
      case "read":
        await this.#both((store) => store.readKey(tag, hashOf(`${o.key}`)));
        await this.#both((store) => store.listKeys(tag));
        await this.#both((store) => store.readAccountBudgets(tag));
        await this.#both((store) => store.readLimits(tag, keyScope(`key_${tag}${o.key}`)));
        await this.#both((store) => store.readLedger(tag, o.key, 3));
        await this.#both((store) => store.listCodes(this.#name, 3));
        await this.#both((store) => store.readDays(tag, "2026-05-20", "2026-06-30"));
    }
  }

  async #keepSignIns(tag: AccountTag, o: Extract<Operation, { do: "keepSignIn" }>): Promise<void> {
    const { kind, id, data, lastsMs } = o;
    const owner = o.operator ? "operator" : tag;
    for (let n = 0; n < o.more; n++) {
      const record = { kind, id: `${id.slice(0, 1)}${n}`, data, lastsMs };
      await this.#both((store) => store.keepSignIn(owner, record));
    }
    await this.#both((store) => store.keepSignIn(owner, { kind, id, data, lastsMs }));
  }

  async #readSignIns(tag: AccountTag, { operator, kind }: { operator: boolean; kind: SignInKind }): Promise<void> {
    const owner = operator ? "operator" : tag;
    await this.#both((store) => store.listSignIns(owner));
    await this.#both((store) => store.findSignIn(owner, kind, "a"));
  }

  /** The embedded store keeps the codes of earlier runs, whose ids all sort before this run's. */
  #codeId(number: number): string {
    return `${this.#name}${number}`;
  }

  #batchId(number: number): string {
    return `${this.#name}b${number}`;
  }

  async #admit(tag: AccountTag, o: Extract<Operation, { do: "admit" }>): Promise<void> {
    const { rid, key, do: _, account: __, idempotency: said, address, ...rest } = o;
    const idempotency = keyOf(said);
    const from = addressBits(address);
    const ask = admitAsk({
      ...rest,
      address: from,
      tag,
      requestId: ridOf(rid),
      keyHash: hashOf(`${key}`),
      idempotency,
    });
    const answer = await this.#both((store) => store.admit(ask));
    if (answer.outcome !== "admitted") return;
    this.#admitted.set(`${tag}${rid}`, answer);
    if (!idempotency) return;
    this.#keyed.set(`${tag}${rid}`, idempotency);
    this.#markExpiries.push(this.#nowMs + o.holdTtlMs - 1);
  }

  /** Settles what was admitted with the id, or voids it without any knowledge of the request. */
  async #settle(tag: AccountTag, o: Extract<Operation, { do: "settle" }>): Promise<void> {
    const permit = this.#admitted.get(`${tag}${o.rid}`);
    // A request with a key is settled with it; any other is one that a failover has lost.
    const key = permit ? this.#keyed.get(`${tag}${o.rid}`) : keyOf(o.idempotency);
    const untilMs = (permit?.storeTimeMs ?? this.#nowMs - o.ageMs) + o.keepMs;
    const kept = key && { ...key, streamed: o.streamed, untilMs };
    const voided = o.voided || (permit === undefined && o.rid % 2 === 0);
    const unknown = {
      storeTimeMs: this.#nowMs - o.ageMs,
      group: "big",
      keyId: `key_${tag}0`,
      entitlement: undefined,
    };
    const ask = settleAsk({ tag, requestId: ridOf(o.rid), groups: [] }, permit ?? unknown, {
      amount: voided ? 0n : o.amount,
      absorbed: o.absorbed,
      absorbedCause: "client_gone",
      upstream: "east",
      kind: permit?.entitlement === undefined ? "pay_per_use" : "time_card",
      model: o.model,
      tokensTaken: o.tokensTaken,
      tokensUsed: o.tokensUsed,
      tokensPerMinute: o.tokensPerMinute,
      tokens: o.tokens,
      attempts: o.attempts,
      costs: o.costs && costsOf(o.costs, !voided),
      voided,
      counted: permit?.counted,
      leftUnpaid:
        voided && o.leftUnpaid ? { ...o.leftUnpaid, costs: costsOf(o.costs ?? o.leftUnpaid.costs, true) } : undefined,
      idempotency: kept,
    });
    if (kept) this.#markExpiries.push(kept.untilMs - 1);
    const expiresAtMs = this.#nowMs + SETTLED_MARK_MS;
    const answer = this.#both((store) => store.settle(ask)).then(({ outcome }) => {
      if (outcome === "settled") this.#markExpiries.push(expiresAtMs);
    });
    if (!this.#goesOn) return answer;
    answer.catch(() => undefined);
    this.#waiting.push(answer);
  }

  /**
   * Back no further than the last mark that expired: Redis deletes an expired mark for good, at a time that it chooses, while
   * the embedded store may still show it when the clock is set back. Both are correct.
   */
  #jump(byMs: number): void {
    const floor = Math.max(
      0,
      ...this.#markExpiries.filter((expiry) => expiry < this.#latestMs).map((expiry) => expiry + 1),
    );
    this.#setTime(Math.max(floor, this.#nowMs + byMs));
  }

  #setTime(epochMs: number): void {
    this.#nowMs = epochMs;
    this.#latestMs = Math.max(this.#latestMs, epochMs);
    for (const bench of this.#benches) bench.setTime(epochMs);
  }

  /** Calls both stores; their answers must be equal. */
  async #both<T>(work: (store: Store) => Promise<T>): Promise<T> {
    const [first, second] = (await Promise.all(this.#benches.map((bench) => work(bench.store)))) as [T, T];
    assert.deepEqual(second, first, "the second store (actual) and the first (expected) differ");
    return first;
  }
}
