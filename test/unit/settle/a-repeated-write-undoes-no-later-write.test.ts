/**
 * docs/failure-model.md invariant 32: the journal repeats the acknowledged writes of a day in their order. A write of any kind
 * that is repeated after all later writes leaves the store exactly as it is.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { journaledStore } from "../../../src/settle/journal/journaled-store.ts";
import type { AdminRecord } from "../../../src/settle/journal.ts";
import { replay } from "../../../src/settle/recovery/replayed-writes.ts";
import type { Store } from "../../../src/store/contract.ts";
import { limitsText } from "../../../src/store/limits/limits.ts";
import type { SignInKind, SignInOwner } from "../../../src/store/sign-ins.ts";
import { NANO_USD_MAX, nanoUsd } from "../../../src/values/money.ts";
import { openStandingStore } from "../console/test-store.ts";
import { codeHashOf, hashOf, tagOf } from "../store/asks.ts";

const TAG = tagOf("Again");
const DAY_CARD = {
  card: "day",
  plan: "pro",
  group: "cards",
  lastsMs: 86_400_000,
  starts: "at_redemption",
  quota: undefined,
} as const;

test("repeating all writes of a day twice each, oldest first and newest first, changes nothing", async (t) => {
  const store = await openStandingStore(t);
  const records: AdminRecord[] = [];
  const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
  const writes = journaledStore(store, journal, (_, error) => assert.fail(String(error)));
  await writes.createAccount({ tag: TAG, name: "alice", plan: "free" });
  await writes.setPlan(TAG, "pro");
  await writes.setPlan(TAG, "free");
  for (const below of [5n, 7n]) await writes.setNotifyBelow(TAG, nanoUsd(below));
  for (const name of ["bob", "carol"]) await writes.renameAccount(TAG, name);
  await writes.changeAccount(TAG, { status: "suspended", labels: { team: "red", no: "4711" } });
  await writes.changeAccount(TAG, { status: "normal", labels: { no: "" } });
  await writes.createKey(TAG, { id: "key_1", hash: hashOf("1"), group: "big" });
  await writes.createKey(TAG, { id: "key_2", hash: hashOf("2"), group: "big" });
  for (const group of ["cards", "big", "other"]) await writes.changeKey(TAG, "key_1", { group });
  await writes.changeKey(TAG, "key_2", { group: "cards" });
  await writes.changeKey(TAG, "key_1", { status: "suspended", name: "Laptop", expiresAtMs: 4_000_000_000_000 });
  await writes.changeKey(TAG, "key_1", { status: "normal", name: "", expiresAtMs: "never" });
  await writes.rotateKey(TAG, "key_1", { hash: hashOf("1b"), overlapMs: 60_000 });
  await writes.rotateKey(TAG, "key_1", { hash: hashOf("1c"), overlapMs: 0 });
  await writes.changeKey(TAG, "key_2", { status: "suspended" });
  await writes.revokeKey(TAG, "key_2");
  await writes.credit(TAG, { id: "pay_1", amount: 100n, kind: "topup", note: "" });
  await writes.credit(TAG, { id: "adj_1", amount: -40n, kind: "adjust", note: "typo" });
  await writes.grant(TAG, { id: "gift", reference: "gift", afterPrevious: false, ...DAY_CARD });
  const codes = ["a", "b"].map((name) => ({ id: `code_${name}`, hash: codeHashOf(name) }));
  await writes.createCodes(DAY_CARD, codes);
  await writes.voidCode("code_a");
  await writes.redeem({ hash: codeHashOf("b"), tag: TAG });
  await makeBatch(writes);
  const other = tagOf("Closed");
  await writes.createAccount({ tag: other, name: "alice", plan: "free" });
  await writes.credit(other, { id: "pay_2", amount: 7n, kind: "topup", note: "" });
  await writes.createKey(other, { id: "key_3", hash: hashOf("3"), group: "big" });
  await writes.changeAccount(other, { labels: { team: "blue" } });
  await writes.closeAccount(other);
  await writeSignIns(writes);
  const kinds = new Set(records.map(({ kind }) => kind));
  assert.deepEqual([...kinds].sort(), [
    "account_change",
    "account_create",
    "account_notify",
    "account_plan",
    "account_rename",
    "code",
    "credit",
    "grant",
    "key_change",
    "key_create",
    "key_revoke",
    "key_rotate",
    "sign_in_drop",
  ]);

  const whole = async () => ({
    accounts: [await store.inspect(TAG), await store.inspect(other)],
    ...(await codesOf(store)),
    signIns: [await store.listSignIns(TAG), await store.listSignIns("operator")],
  });
  const before = await whole();
  for (const order of [records, records.toReversed()]) {
    for (const record of [...order, ...order]) {
      const refused = await replay(record, store);
      // Also the key of the account that is closed by now: the key exists.
      assert.equal(refused, undefined, `${record.kind} ${record.id}`);
      assert.deepEqual(await whole(), before, `${record.kind} ${record.id}`);
    }
  }
});

/** A link that is taken, a session that is ended, then all links; of each kind one that was kept later exists. */
async function writeSignIns(writes: Store): Promise<void> {
  const keep = (owner: SignInOwner, kind: SignInKind, id: string) => writes.keepSignIn(owner, { kind, id, data: "{}" });
  for (const owner of [TAG, "operator"] as const) {
    await keep(owner, "link", "taken");
    await writes.takeSignIn(owner, "link", "taken");
    for (const id of ["ended", "runs"]) await keep(owner, "session", id);
    await writes.dropSignIn(owner, "session", "ended");
    await keep(owner, "link", "unused");
    await writes.dropSignIns(owner, "link");
    await keep(owner, "link", "new");
    await keep(owner, "passkey", "key");
  }
}

/** A batch of three codes, of which one is redeemed and one voided; and a gift. */
async function makeBatch(writes: Store): Promise<void> {
  const facts = { ...DAY_CARD, batch: "batch_1", expiresAtMs: 4_000_000_000_000 };
  const codes = ["d", "e", "f"].map((name) => ({ id: `code_${name}`, hash: codeHashOf(name) }));
  await writes.createCodes(facts, codes, { label: "fair", count: 3 });
  await writes.redeem({ hash: codeHashOf("d"), tag: TAG });
  await writes.voidCodes(["code_d", "code_e"]);
  const given = { id: "gift_1", reference: "sorry", afterPrevious: false, gift: true } as const;
  await writes.grant(TAG, { ...DAY_CARD, ...given });
}

const codesOf = async (store: Store) => ({
  codes: await store.listCodes(undefined, 10),
  batches: await store.listBatches(undefined, 10),
  inBatch: await store.listBatchCodes("batch_1", undefined, 10),
});

test("a store that has lost a batch and a gift gets them back, also after the codes have expired", async (t) => {
  const madeMs = Date.now();
  const store = await openStandingStore(t, madeMs);
  await store.createAccount({ tag: TAG, name: "alice", plan: "pro" });
  const records: AdminRecord[] = [];
  const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
  await makeBatch(journaledStore(store, journal, (_, error) => assert.fail(String(error))));
  const emptied = await openStandingStore(t, 4_000_000_000_001);
  // The journal of the gateway that made the codes may be read after that of the gateway that redeemed one.
  for (const record of records.toReversed()) await replay(record, emptied);
  for (const record of records) assert.equal(await replay(record, emptied), undefined, record.kind);
  const facts = async (of: Store) => {
    const { batches, inBatch } = await codesOf(of);
    const { entitlements, ledger } = (await of.inspect(TAG)) ?? assert.fail();
    return {
      batches: batches.items.map(({ createdAtMs: _, ...batch }) => batch),
      codes: inBatch.items.map(({ id, state, batch, expiresAtMs, tag }) => [id, state, batch, expiresAtMs, tag]),
      cards: entitlements.map(({ id, card, fromMs }) => [id, card, fromMs]),
      lines: ledger.map(({ debit, credit, reference }) => `${debit} ${credit} ${reference}`).sort(),
    };
  };
  const had = await facts(store);
  assert.deepEqual(await facts(emptied), had);
  assert.deepEqual(
    had.codes.map(([id, state]) => `${id} ${state}`),
    ["code_d redeemed", "code_e void", "code_f unused"],
  );
  assert.ok(had.lines.includes("gifts:day ent_gift_1 sorry"), had.lines.join());
});

test("a store that has lost the notice threshold of an account gets back the one that was set last", async (t) => {
  const [store, emptied] = [await openStandingStore(t), await openStandingStore(t)];
  const records: AdminRecord[] = [];
  const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
  const writes = journaledStore(store, journal, (_, error) => assert.fail(String(error)));
  await writes.createAccount({ tag: TAG, name: "alice", plan: "pro" });
  for (const below of [5n, 7n]) await writes.setNotifyBelow(TAG, nanoUsd(below));
  for (const record of [...records, ...records.toReversed()])
    assert.equal(await replay(record, emptied), undefined, record.kind);
  assert.equal((await emptied.getAccount(TAG))?.notifyBelow, 7n);
  await writes.setNotifyBelow(TAG, undefined);
  for (const record of records.toReversed()) assert.equal(await replay(record, emptied), undefined, record.kind);
  assert.equal((await emptied.getAccount(TAG))?.notifyBelow, undefined);
});

test("a store that has lost a key gets it back with its name, its expiry and its suspension", async (t) => {
  const store = await openStandingStore(t);
  await store.createAccount({ tag: TAG, name: "alice", plan: "pro" });
  const records: AdminRecord[] = [];
  const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
  const writes = journaledStore(store, journal, (_, error) => assert.fail(String(error)));
  const key = { group: "big", name: "Laptop", expiresAtMs: 4_000_000_000_000 };
  await writes.createKey(TAG, { id: "key_1", hash: hashOf("1"), ...key });
  await writes.createKey(TAG, { id: "key_2", hash: hashOf("2"), ...key });
  await writes.changeKey(TAG, "key_2", { status: "suspended", name: "Phone" });
  await writes.rotateKey(TAG, "key_2", { hash: hashOf("2b"), overlapMs: 60_000 });
  const emptied = await openStandingStore(t);
  for (const record of records) assert.equal(await replay(record, emptied), undefined, record.kind);
  const facts = async (of: Store) =>
    (await of.listKeys(TAG)).map(({ id, name, status, expiresAtMs }) => ({ id, name, status, expiresAtMs }));
  for (const value of ["2", "2b"]) {
    const [had, has] = await Promise.all([store, emptied].map((of) => of.readKey(TAG, hashOf(value))));
    assert.equal(has?.key.expiresAtMs, had?.key.expiresAtMs, value);
    assert.equal(has?.key.id, "key_2");
  }
  assert.deepEqual(await facts(emptied), await facts(store));
  assert.deepEqual((await facts(emptied))[1], {
    id: "key_2",
    name: "Phone",
    status: "suspended",
    expiresAtMs: key.expiresAtMs,
  });
});

test("a lost rotation is restored to a key that has been changed since, and a lost suspension to one that has been rotated", async (t) => {
  const store = await openStandingStore(t);
  const emptied = await openStandingStore(t);
  const records: AdminRecord[] = [];
  const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
  const writes = journaledStore(store, journal, (_, error) => assert.fail(String(error)));
  for (const each of [writes, emptied]) {
    await each.createAccount({ tag: TAG, name: "alice", plan: "pro" });
    await each.createKey(TAG, { id: "key_1", hash: hashOf("1"), group: "big" });
    await each.createKey(TAG, { id: "key_2", hash: hashOf("2"), group: "big" });
    await each.createKey(TAG, { id: "key_3", hash: hashOf("3"), group: "big", expiresAtMs: 4_000_000_000_000 });
  }
  await writes.rotateKey(TAG, "key_1", { hash: hashOf("1b"), overlapMs: 0 });
  await writes.changeKey(TAG, "key_1", { name: "Laptop" });
  await writes.changeKey(TAG, "key_2", { status: "suspended" });
  await writes.rotateKey(TAG, "key_2", { hash: hashOf("2b"), overlapMs: 60_000 });
  await writes.changeKey(TAG, "key_3", { expiresAtMs: "never" });
  const facts = async (of: Store) =>
    Promise.all(
      ["1", "1b", "2", "2b", "3"].map(async (value) => {
        const key = (await of.readKey(TAG, hashOf(value)))?.key;
        return [key?.id, key?.name, key?.status, key?.expiresAtMs];
      }),
    );
  // Another gateway's journal has the later one of each pair and is read first.
  for (const record of records.toReversed()) assert.equal(await replay(record, emptied), undefined, record.kind);
  assert.deepEqual(await facts(emptied), await facts(store));
});

for (const [what, give] of [
  ["a key", (writes: Store) => writes.createKey(TAG, { id: "key_1", hash: hashOf("1"), group: "big" })],
  ["money", (writes: Store) => writes.credit(TAG, { id: "pay_1", amount: 100n, kind: "topup", note: "" })],
  [
    "a card",
    (writes: Store) => writes.grant(TAG, { id: "gift", reference: "gift", afterPrevious: false, ...DAY_CARD }),
  ],
] as const) {
  test(`${what} of an account that no journal has: the repeated write recreates the account`, async (t) => {
    const store = await openStandingStore(t);
    await store.createAccount({ tag: TAG, name: "alice", plan: "pro" });
    const records: AdminRecord[] = [];
    const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
    await give(journaledStore(store, journal, (_, error) => assert.fail(String(error))));
    const before = await store.inspect(TAG);
    const emptied = await openStandingStore(t);
    for (const record of records) assert.equal(await replay(record, emptied), undefined, record.kind);
    const after = await emptied.inspect(TAG);
    assert.deepEqual(
      after?.keys.map(({ id }) => id),
      before?.keys.map(({ id }) => id),
    );
    assert.deepEqual([after?.account.name, after?.account.plan], ["alice", "pro"]);
    assert.equal(after?.account.balance, before?.account.balance);
    assert.equal(after?.entitlements.length, before?.entitlements.length);
  });
}

test("a write about something that is missing may succeed later, and one that the store will never take is not retried", async (t) => {
  const [store, emptied] = [await openStandingStore(t), await openStandingStore(t)];
  const records: AdminRecord[] = [];
  const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
  const writes = journaledStore(store, journal, (_, error) => assert.fail(String(error)));
  for (const each of [writes, emptied]) await each.createAccount({ tag: TAG, name: "alice", plan: "pro" });
  await writes.createKey(TAG, { id: "key_1", hash: hashOf("1"), group: "big" });
  await writes.createCodes(DAY_CARD, [{ id: "code_a", hash: codeHashOf("a") }]);
  await writes.credit(TAG, { id: "pay_1", amount: 100n, kind: "topup", note: "" });
  records.length = 0;
  await writes.credit(TAG, { id: "adj_1", amount: -40n, kind: "adjust", note: "typo" });
  await writes.rotateKey(TAG, "key_1", { hash: hashOf("1b"), overlapMs: 60_000 });
  await writes.voidCode("code_a");
  const verdicts = async () => {
    // The account exists: the records that would create it are left out.
    const own = records.filter(({ kind }) => !kind.startsWith("account_"));
    const found = await Promise.all(own.map((record) => replay(record, emptied)));
    return found.map((one) => one && [one.problem, one.mayPass]);
  };
  assert.deepEqual(await verdicts(), [
    ["the funds that it takes are missing", true],
    ["the key is not there", true],
    ["the code is not there", true],
  ]);
  // Another gateway's journal has them.
  await emptied.createKey(TAG, { id: "key_1", hash: hashOf("1"), group: "big" });
  await emptied.createCodes(DAY_CARD, [{ id: "code_a", hash: codeHashOf("a") }]);
  await emptied.credit(TAG, { id: "pay_1", amount: 100n, kind: "topup", note: "" });
  assert.deepEqual(await verdicts(), [undefined, undefined, undefined]);

  records.length = 0;
  await writes.credit(TAG, { id: "pay_2", amount: 100n, kind: "topup", note: "" });
  await writes.createCodes(DAY_CARD, [{ id: "code_b", hash: codeHashOf("b") }]);
  await writes.voidCode("code_b");
  await emptied.credit(TAG, { id: "pay_3", amount: NANO_USD_MAX - 60n, kind: "topup", note: "" });
  await emptied.createCodes(DAY_CARD, [{ id: "code_b", hash: codeHashOf("b") }]);
  await emptied.redeem({ hash: codeHashOf("b"), tag: TAG });
  assert.deepEqual(await verdicts(), [
    ["the store answers refused", false],
    undefined,
    ["the code is redeemed", false],
  ]);
});

/** The record as it is read back from the journal's file. */
function asRead(record: AdminRecord): AdminRecord {
  return JSON.parse(JSON.stringify(record, (_, value) => (typeof value === "bigint" ? `${value}` : value)));
}

test("a store that has lost accounts gets them back by name, with labels, suspension and expiry, whichever journal comes first", async (t) => {
  const store = await openStandingStore(t);
  const journals: AdminRecord[][] = [[], []];
  const [first, second] = journals.map((records) => {
    const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
    return journaledStore(store, journal, (_, error) => assert.fail(String(error)));
  }) as [Store, Store];
  const [one, other] = [tagOf("One"), tagOf("Other")];
  await first.createAccount({ tag: one, name: "alice", plan: "free" });
  await first.createKey(one, { id: "key_1", hash: hashOf("1"), group: "big" });
  await first.credit(one, { id: "pay_1", amount: 100n, kind: "topup", note: "" });
  await second.setPlan(one, "pro");
  await second.renameAccount(one, "bob");
  await second.createAccount({ tag: other, name: "alice", plan: "free" });
  await second.changeAccount(other, { status: "suspended", labels: { team: "red" } });
  await second.changeAccount(one, { labels: { team: "blue" } });
  await second.closeAccount(one);
  for (const order of [journals, journals.toReversed()]) {
    const emptied = await openStandingStore(t);
    for (const records of [...order, ...order]) for (const record of records) await replay(record, emptied);
    const facts = async (of: Store) =>
      Promise.all(
        ["alice", "bob"].map(async (name) => {
          const { tag, plan, status, labels, balance } = (await of.findAccount(name)) ?? {};
          return { tag, plan, status, labels, balance };
        }),
      );
    assert.deepEqual(await facts(emptied), await facts(store));
    assert.notEqual((await emptied.readKey(one, hashOf("1")))?.key.status, "normal");
  }
});

test("changes made between a loss and the repeated writes undo no lost change of another property", async (t) => {
  const [store, emptied] = [await openStandingStore(t), await openStandingStore(t)];
  const lost: AdminRecord[] = [];
  const since: AdminRecord[] = [];
  const journalOf = (records: AdminRecord[]) => ({
    adminWrite: async (record: AdminRecord) => void records.push(asRead(record)),
  });
  const fail = (_: AdminRecord, error: unknown) => assert.fail(String(error));
  for (const each of [store, emptied]) {
    await each.createAccount({ tag: TAG, name: "alice", plan: "pro" });
    for (const id of ["key_1", "key_2"]) await each.createKey(TAG, { id, hash: hashOf(id), group: "big" });
  }
  const caps = limitsText({ concurrency: 3 });
  const before = journaledStore(store, journalOf(lost), fail);
  await before.changeAccount(TAG, { status: "suspended" });
  await before.changeKey(TAG, "key_1", { status: "suspended" });
  await before.changeKey(TAG, "key_1", { caps });
  await before.changeKey(TAG, "key_2", { name: "Laptop", status: "suspended" });
  // The store has lost all of it.
  const after = journaledStore(emptied, journalOf(since), fail);
  await after.changeAccount(TAG, { labels: { team: "red" } });
  await after.changeKey(TAG, "key_1", { name: "Phone" });
  await after.changeKey(TAG, "key_2", { status: "normal" });
  const facts = async () => {
    const { status, labels } = (await emptied.getAccount(TAG)) ?? assert.fail();
    const keys = (await emptied.listKeys(TAG)).map((key) => [key.name, key.status, key.caps]);
    return { status, labels, keys };
  };
  const wanted = {
    status: "suspended",
    labels: { team: "red" },
    // The operator's last change to the second key was to resume it.
    keys: [
      ["Phone", "suspended", caps],
      ["Laptop", "normal", ""],
    ],
  };
  const all = [...lost, ...since];
  for (const record of [...lost, ...all, ...all.toReversed()]) {
    assert.equal(await replay(record, emptied), undefined, record.kind);
  }
  assert.deepEqual(await facts(), wanted);
});

test("a store that has lost limits gets them back: a key's own, the operator's caps of the key, and the account's", async (t) => {
  const [store, emptied] = [await openStandingStore(t), await openStandingStore(t)];
  const records: AdminRecord[] = [];
  const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
  const writes = journaledStore(store, journal, (_, error) => assert.fail(String(error)));
  const [limits, caps, ofAccount] = [
    limitsText({ concurrency: 3 }),
    limitsText({ requestsPerMinute: 60 }),
    limitsText({ budgets: { month: nanoUsd(50n) } }),
  ];
  await writes.createAccount({ tag: TAG, name: "alice", plan: "pro" });
  await writes.createKey(TAG, { id: "key_1", hash: hashOf("1"), group: "big" });
  await writes.changeKey(TAG, "key_1", { limits });
  await writes.changeKey(TAG, "key_1", { caps });
  await writes.setAccountLimits(TAG, ofAccount);
  for (const record of [...records, ...records.toReversed()])
    assert.equal(await replay(record, emptied), undefined, record.kind);
  const [key] = await emptied.listKeys(TAG);
  assert.deepEqual([key?.limits, key?.caps, (await emptied.getAccount(TAG))?.limits], [limits, caps, ofAccount]);
});

test("a key change by a version without limits leaves the limits as they are", async (t) => {
  const store = await openStandingStore(t);
  await store.createAccount({ tag: TAG, name: "alice", plan: "pro" });
  const made = await store.createKey(TAG, { id: "key_1", hash: hashOf("1"), group: "big" });
  const limits = limitsText({ concurrency: 3 });
  const set = await store.changeKey(TAG, "key_1", { limits, caps: limits });
  const { limits: _, caps: __, ...before } = { ...(made ?? assert.fail()), name: "renamed" };
  const payload = { ...before, revision: (set?.revision ?? 0) + 1 };
  assert.equal(await replay(asRead({ kind: "key_change", id: "key_1:2", payload }), store), undefined);
  const [key] = await store.listKeys(TAG);
  assert.deepEqual([key?.name, key?.limits, key?.caps], ["renamed", limits, limits]);
});

test("the plan that an account had when it was renamed is not undone by an older change that is repeated after it", async (t) => {
  const [store, emptied] = [await openStandingStore(t), await openStandingStore(t)];
  const journals: AdminRecord[][] = [[], []];
  const [first, second] = journals.map((records) => {
    const journal = { adminWrite: async (record: AdminRecord) => void records.push(asRead(record)) };
    return journaledStore(store, journal, (_, error) => assert.fail(String(error)));
  }) as [Store, Store];
  await first.createAccount({ tag: TAG, name: "alice", plan: "free" });
  await first.setPlan(TAG, "pro");
  // By a gateway whose journal is lost.
  await store.setPlan(TAG, "free");
  await second.renameAccount(TAG, "bob");
  for (const records of journals.toReversed()) for (const record of records) await replay(record, emptied);
  const facts = async (of: Store) => {
    const { name, plan, planRevision } = (await of.getAccount(TAG)) ?? assert.fail();
    return { name, plan, planRevision };
  };
  assert.deepEqual(await facts(emptied), await facts(store));
  assert.deepEqual([(await facts(store)).name, (await facts(store)).plan], ["bob", "free"]);
});
