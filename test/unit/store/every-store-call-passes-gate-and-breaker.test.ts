/**
 * Between the gateway and the store: each of the four calls of a request passes the breaker and is timed; admissions,
 * settlements, key reads and the other writes wait for the gate, and calls refused by a shut gate count against no server. A
 * call that bypassed them would spend money in a store that lost what was spent (docs/failure-model.md rows B3 and B12).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type RequestStore, type Store, StoreError } from "../../../src/store/contract.ts";
import { composeStore } from "../../../src/store/middleware/compose.ts";
import type { Gate } from "../../../src/store/middleware/gate.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { ManualClock, turns } from "../settle/rig.ts";
import { admitAsk, hashOf, ridOf, settleAsk, tagOf } from "./asks.ts";

const TAG = tagOf("Gated");
const ASK = admitAsk({ tag: TAG, requestId: ridOf(1) });
const CHARGE = settleAsk(ASK, { storeTimeMs: 1, group: "big", keyId: "k", entitlement: undefined });
const PAYMENT = { id: "p", amount: nanoUsd(1n), kind: "topup", note: "" } as const;

type Call = (store: Store) => Promise<unknown>;

const CALLS: Readonly<Record<Exclude<keyof RequestStore, "shardOf">, Call>> = {
  readKey: (store) => store.readKey(TAG, hashOf("key")),
  admit: (store) => store.admit(ASK),
  extend: (store) => store.extend({ requestId: ridOf(1), tag: TAG, target: nanoUsd(1n) }),
  settle: (store) => store.settle(CHARGE),
};
const NAMES = Object.keys(CALLS) as (keyof typeof CALLS)[];

/** A store that answers each call as the test says, and records the calls. */
function bench(answer: () => Promise<unknown>) {
  const got: string[] = [];
  const call = (name: string) => () => {
    got.push(name);
    return answer();
  };
  const calls = Object.fromEntries([...NAMES, "credit"].map((name) => [name, call(name)]));
  const replicated = Object.fromEntries([...NAMES, "credit"].map((name) => [name, call(`confirmed ${name}`)]));
  const writes = new Proxy(calls, { get: (all, name: string) => all[name] ?? call(name) });
  const confirmed = new Proxy(replicated, { get: (all, name: string) => all[name] ?? call(`confirmed ${name}`) });
  const opened = new Proxy(writes, {
    get(all, name: string) {
      if (name === "shardOf") return () => "a";
      return name === "confirming" ? () => confirmed : Reflect.get(all, name);
    },
  });
  const clock = new ManualClock();
  const metrics = createMetrics();
  const log = createLog({ level: "silent" });
  const parts = { clock, random: () => 1, metrics, log, remote: true };
  const composed = composeStore(opened as unknown as Store, parts);
  const seconds = async (operation: string) => {
    const { body } = await metrics.page();
    return Number(
      new RegExp(`^tollgate_store_seconds_count\\{operation="${operation}"\\} (\\d+)$`, "m").exec(body)?.[1] ?? 0,
    );
  };
  return { composed, got, seconds };
}

const older = () => new StoreError("older", "the store is not the one that it was");
const SHUT: Gate = { pass: () => Promise.reject(older()), recheck: () => Promise.resolve() };
const isOlder = (error: unknown) => error instanceof StoreError && error.kind === "older";
const unsent = (error: unknown) => error instanceof StoreError && error.outcome === "unsent";
const away = () => Promise.reject(new StoreError("unavailable", "away"));

for (const name of NAMES) {
  test(`${name}: five calls without an answer open the breaker, and the sixth is not sent`, async () => {
    const { composed, got, seconds } = bench(away);
    for (let i = 0; i < 5; i++) await assert.rejects(CALLS[name](composed.store));
    await assert.rejects(CALLS[name](composed.store), unsent);
    assert.deepEqual(
      got,
      Array.from({ length: 5 }, () => name),
    );
    assert.equal(await seconds(name), 5);
    for (const other of NAMES) await assert.rejects(CALLS[other](composed.store), unsent, other);
    composed.stop();
  });
}

test("a shut gate refuses calls unsent and without counting them against a server, but running requests may be extended", async () => {
  const { composed, got } = bench(async () => ({ outcome: "held" }));
  for (const store of [composed.behind(SHUT), composed.confirming(SHUT)]) {
    for (let i = 0; i < 20; i++) {
      for (const name of ["readKey", "admit", "settle"] as const)
        await assert.rejects(CALLS[name](store), isOlder, name);
      await assert.rejects(store.credit(TAG, PAYMENT), isOlder);
      await assert.rejects(store.settledAmounts(TAG, [ridOf(1)]), isOlder);
    }
    for (const call of ["takeSignIn", "findSignIn", "dropSignIn"] as const)
      await assert.rejects(store[call]("operator", "session", "a"), isOlder, call);
    await assert.rejects(store.keepSignIn(TAG, { kind: "session", id: "a", data: "{}" }), isOlder);
    await assert.rejects(store.dropSignIns(TAG, "session"), isOlder);
    assert.deepEqual(got, []);
    await CALLS.extend(store);
    assert.deepEqual(got.splice(0), ["extend"]);
  }
});

/**
 * Each call of a store, and whether a shut gate stops it: all calls that change the store's data, allow a sign-in, or look for
 * charges.
 */
const STOPPED: Readonly<Record<keyof Store, boolean>> = {
  readKey: true,
  admit: true,
  extend: false,
  settle: true,
  settledAmounts: true,
  shardOf: false,
  readLimits: false,
  createAccount: true,
  getAccount: false,
  findAccount: false,
  findAccountName: false,
  listAccountNames: false,
  listAccounts: false,
  setPlan: true,
  setAccountLimits: true,
  readAccountBudgets: false,
  setNotifyBelow: true,
  changeAccount: true,
  renameAccount: true,
  closeAccount: true,
  createKey: true,
  listKeys: false,
  noteKeyUses: true,
  changeKey: true,
  rotateKey: true,
  revokeKey: true,
  credit: true,
  grant: true,
  listCards: false,
  createCodes: true,
  listCodes: false,
  getCode: false,
  getBatch: false,
  listBatches: false,
  listBatchCodes: false,
  voidCode: true,
  voidCodes: true,
  redeem: true,
  readDays: false,
  pageDays: false,
  pageUpstreamDays: false,
  readLedger: false,
  confirming: false,
  finishClaims: true,
  readFigures: false,
  listRecords: false,
  pageMarks: false,
  archiveLedger: true,
  addNotice: true,
  readNotices: false,
  takeNotice: true,
  pageNotices: false,
  leaseNotices: true,
  inspect: false,
  identity: false,
  check: false,
  close: false,
  keepSignIn: true,
  takeSignIn: true,
  findSignIn: true,
  dropSignIn: true,
  dropSignIns: true,
  listSignIns: false,
  // The gate's own questions, and the calls by which an operator answers them.
  epochPartOf: false,
  epochParts: false,
  countEpoch: false,
  stopEpoch: false,
  renewEpoch: false,
};

test("a shut gate stops exactly the calls that change the store's data, allow a sign-in, or look for charges", async () => {
  const { composed, got } = bench(async () => ({ outcome: "held" }));
  const calls = composed.behind(SHUT) as unknown as Record<string, (...ask: unknown[]) => Promise<unknown>>;
  const ask: Readonly<Record<string, readonly unknown[]>> = { admit: [ASK], settle: [CHARGE] };
  for (const [name, isStopped] of Object.entries(STOPPED)) {
    got.length = 0;
    if (isStopped) await assert.rejects(calls[name]?.(...(ask[name] ?? [TAG])) ?? Promise.resolve(), isOlder, name);
    // It returns a store, which here has a `then` like any other call.
    else if (name !== "confirming") await calls[name]?.(TAG);
    if (isStopped) assert.deepEqual(got, [], name);
  }
  composed.stop();
});

test("an open gate is asked first, and operators' writes are those that a replica confirms", async () => {
  let pass = () => {};
  const gate: Gate = {
    pass: () => new Promise((resolve) => (pass = resolve)),
    recheck: () => Promise.resolve(),
  };
  const { composed, got } = bench(async () => ({ outcome: "settled" }));
  for (const [store, write] of [
    [composed.behind(gate), "credit"],
    [composed.confirming(gate), "confirmed credit"],
  ] as const) {
    for (const [call, sent] of [
      [CALLS.admit, "admit"],
      [CALLS.settle, "settle"],
      [(one: Store) => one.credit(TAG, PAYMENT), write],
    ] as const) {
      const answer = call(store);
      await turns(2);
      assert.deepEqual(got, []);
      pass();
      await answer;
      assert.deepEqual(got.splice(0), [sent]);
    }
  }
});

/** Answers that a store that lost its data would also give. */
const DENIALS: readonly (readonly [name: keyof typeof CALLS, answer: unknown])[] = [
  ["readKey", undefined],
  ["readKey", { key: { status: "revoked" } }],
  ["admit", { outcome: "refused", cause: "unknown_key" }],
  ["admit", { outcome: "refused", cause: "revoked_key" }],
  ["settle", { outcome: "unknown_account" }],
];

for (const [name, answer] of DENIALS) {
  test(`${name}: ${JSON.stringify(answer) ?? "nothing"} is accepted only after a look at the store's history`, async () => {
    const looked: string[] = [];
    let lost = false;
    const gate: Gate = {
      pass: () => undefined,
      recheck: async (tag) => {
        looked.push(tag);
        if (lost) throw older();
      },
    };
    const store = bench(async () => answer).composed.behind(gate);
    assert.deepEqual(await CALLS[name](store), answer);
    lost = true;
    await assert.rejects(CALLS[name](store), isOlder);
    assert.deepEqual(looked, [TAG, TAG]);
  });
}
