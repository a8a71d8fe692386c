/** Accounts, keys, payments and cards: what an operator writes. */
import assert from "node:assert/strict";
import test from "node:test";
import { limitsText } from "../../../src/store/limits/limits.ts";
import { KEY_VALUES_MAX } from "../../../src/store/names.ts";
import type { KeyChange } from "../../../src/store/records.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { admitAsk, admitted, causeOf, DAY_MS, hashOf, makeAccount, ridOf, settleAsk, tagOf, terms } from "./asks.ts";
import type { Ask } from "./contract.ts";

export function recordTests(ask: Ask): void {
  test("a tag and a name belong to one account", async () => {
    const { store } = ask();
    const made = await store.createAccount({ tag: tagOf("Rone"), name: "R one", plan: "free" });
    assert.notEqual(made, "exists");
    assert.equal(await store.createAccount({ tag: tagOf("Rone"), name: "R other", plan: "free" }), "exists");
    assert.equal(await store.createAccount({ tag: tagOf("Rtwo"), name: "R one", plan: "free" }), "exists");
    assert.equal(await store.getAccount(tagOf("Rtwo")), undefined);
    assert.deepEqual(await store.findAccount("R one"), made);
    assert.equal(await store.findAccount("R other"), undefined);
    assert.equal((await store.setPlan(tagOf("Rone"), "pro"))?.plan, "pro");
    assert.equal(await store.setPlan(tagOf("Rnone"), "pro"), undefined);
  });

  test("of ten accounts created with one name at once one succeeds", async () => {
    const { store } = ask();
    const tries = Array.from({ length: 10 }, (_, i) =>
      store.createAccount({ tag: tagOf(`Rrace${i}`), name: "R race", plan: "free" }),
    );
    const made = (await Promise.all(tries)).filter((answer) => answer !== "exists");
    assert.equal(made.length, 1);
    assert.equal((await store.findAccount("R race"))?.tag, made[0]?.tag);
  });

  test("accounts are listed by name, page by page", async () => {
    const { store } = ask();
    for (const name of ["zz c", "zz a", "zz b", "zz ä", "zz 😀"]) {
      await store.createAccount({ tag: tagOf(`R${Buffer.from(name).toString("hex").slice(-8)}`), name, plan: "free" });
    }
    const names: string[] = [];
    let cursor: string | undefined = "zz";
    do {
      const page = await store.listAccounts(cursor, 2);
      assert.ok(page.items.length <= 2);
      names.push(...page.items.map((account) => account.name));
      cursor = page.next;
    } while (cursor !== undefined);
    assert.deepEqual(names, ["zz a", "zz b", "zz c", "zz ä", "zz 😀"]);
  });

  test("a key is created once and changes groups until it is revoked, which is final", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Rkeys");
    const createdAtMs = nowMs();
    const again = await store.createKey(tag, { id: "key_Rkeys", hash: hashOf("key"), group: "elsewhere" });
    assert.deepEqual([again?.group, again?.revision], ["big", 1]);
    const other = await store.createKey(tag, { id: "key_Rkeys", hash: hashOf("another"), group: "big" });
    assert.deepEqual(other, again, "an id has one key, whatever its value");
    assert.equal(await store.readKey(tag, hashOf("another")), undefined);
    assert.equal((await store.readKey(tag, hashOf("key")))?.key.id, "key_Rkeys");
    assert.equal(await store.createKey(tagOf("Rnone"), { id: "k", hash: hashOf("k"), group: "g" }), undefined);
    const first = (await store.changeKey(tag, "key_Rkeys", { group: "small" }))?.revision ?? 0;
    assert.ok(Math.abs(first - nowMs()) < 60_000, "a revision is the store's time");
    const second = (await store.changeKey(tag, "key_Rkeys", { group: "small" }))?.revision ?? 0;
    assert.ok(second > first, "the same group again gets a higher revision than one that a store has lost");
    assert.equal(await store.changeKey(tag, "key_none", { group: "small" }), undefined);
    const revoked = await store.revokeKey(tag, "key_Rkeys");
    assert.deepEqual([revoked?.status, revoked?.group], ["revoked", "small"]);
    assert.ok((revoked?.revision ?? 0) > second);
    assert.deepEqual(await store.revokeKey(tag, "key_Rkeys"), revoked);
    assert.deepEqual(await store.changeKey(tag, "key_Rkeys", { group: "big" }), revoked);
    assert.equal(await store.revokeKey(tag, "key_none"), undefined);
    assert.deepEqual(await store.listKeys(tag), [{ ...revoked, budgets: new Map() }]);
    assert.ok(Math.abs((revoked?.createdAtMs ?? 0) - createdAtMs) < 60_000);
    const answer = await store.admit(admitAsk({ tag, requestId: ridOf(1) }));
    assert.equal(causeOf(answer), "revoked_key");
  });

  test("a key has a name and an expiry, is suspended and resumed, and keeps what a change does not name", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Rchange");
    const endMs = nowMs() + 60_000;
    const hash = hashOf("named");
    const made = await store.createKey(tag, {
      id: "key_named",
      hash,
      group: "big",
      name: "Läptop",
      expiresAtMs: endMs,
    });
    assert.deepEqual([made?.name, made?.status, made?.expiresAtMs], ["Läptop", "normal", endMs]);
    const facts = async (change: KeyChange) => {
      const key = await store.changeKey(tag, "key_named", change);
      assert.deepEqual((await store.readKey(tag, hash))?.key, key);
      return [key?.group, key?.name, key?.status, key?.expiresAtMs];
    };
    const request = (n: number) => store.admit(admitAsk({ tag, requestId: ridOf(n), keyHash: hash })).then(causeOf);
    assert.equal(await request(1), "admitted");
    assert.deepEqual(await facts({ status: "suspended" }), ["big", "Läptop", "suspended", endMs]);
    assert.equal(await request(2), "suspended");
    assert.deepEqual(await facts({ group: "small" }), ["small", "Läptop", "suspended", endMs]);
    assert.deepEqual(await facts({ group: "big", name: "" }), ["big", "", "suspended", endMs]);
    assert.deepEqual(await facts({ status: "normal" }), ["big", "", "normal", endMs]);
    assert.equal(await request(3), "admitted");
    // Expired by the store's clock: the key is refused from its expiry on.
    const overMs = nowMs() - 60_000;
    assert.deepEqual(await facts({ expiresAtMs: overMs }), ["big", "", "normal", overMs]);
    assert.equal(await request(4), "expired_key");
    assert.deepEqual(await facts({ status: "suspended" }), ["big", "", "suspended", overMs]);
    assert.equal(await request(5), "suspended");
    assert.deepEqual(await facts({ status: "normal", expiresAtMs: "never" }), ["big", "", "normal", undefined]);
    assert.equal(await request(6), "admitted");
    await store.changeKey(tag, "key_named", { status: "suspended" });
    assert.equal((await store.revokeKey(tag, "key_named"))?.status, "revoked", "a suspended key can be revoked");
    assert.equal(await request(7), "revoked_key");
    assert.equal((await store.changeKey(tag, "key_named", { status: "normal" }))?.status, "revoked");
    assert.equal(await request(8), "revoked_key");
  });

  test("a rotation changes only the value of a key: suspension, expiry and limits stay", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Rstays");
    const id = "key_Rstays";
    const limits = limitsText({ concurrency: 2 });
    const caps = limitsText({ requestsPerMinute: 9 });
    const set = { name: "Laptop", status: "suspended", expiresAtMs: nowMs() + 600_000, limits, caps } as const;
    const before = await store.changeKey(tag, id, set);
    const rotated = await store.rotateKey(tag, id, { hash: hashOf("two"), overlapMs: 300_000 });
    assert.ok(before && rotated && rotated !== "too_many");
    const { previousUntilMs: _, rotation, ...kept } = rotated;
    const { previousUntilMs: none, rotation: never, ...had } = before;
    assert.deepEqual([kept, none, never], [had, undefined, 0]);
    assert.ok(rotation > 0);
    for (const value of ["key", "two"]) {
      const asked = admitAsk({ tag, requestId: ridOf(1), keyHash: hashOf(value) });
      assert.equal(causeOf(await store.admit(asked)), "suspended", value);
    }
  });

  test("a rotated key has a new value, and the old values work until they expire, as long as the key does", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Rrotate", { funds: 1_000_000n });
    const id = "key_Rrotate";
    let number = 0;
    const by = (value: string) =>
      store.admit(admitAsk({ tag, requestId: ridOf(++number), keyHash: hashOf(value) })).then((answer) => {
        if (answer.outcome === "admitted") assert.equal(answer.keyId, id);
        return causeOf(answer);
      });
    const rotate = async (value: string, rotation: { overlapMs: number } | { untilMs: number }, revision?: number) => {
      const key = await store.rotateKey(tag, id, { hash: hashOf(value), ...rotation }, revision);
      assert.ok(key !== undefined && key !== "too_many");
      return key;
    };
    const first = await rotate("two", { overlapMs: 600_000 });
    assert.ok(Math.abs((first.previousUntilMs ?? 0) - nowMs() - 600_000) < 60_000, "the store's clock");
    assert.deepEqual([await by("key"), await by("two")], ["admitted", "admitted"]);
    assert.deepEqual(await rotate("two", { overlapMs: 0 }), first, "the same rotation again changes nothing");
    assert.equal((await store.readKey(tag, hashOf("key")))?.key.expiresAtMs, first.previousUntilMs);
    assert.equal((await store.readKey(tag, hashOf("two")))?.key.expiresAtMs, undefined);
    assert.deepEqual(await store.listKeys(tag), [{ ...first, budgets: new Map() }], "one key");

    // Whichever comes first, the expiry of the key or of the value.
    await store.changeKey(tag, id, { expiresAtMs: nowMs() + 3_600_000 });
    assert.equal((await store.readKey(tag, hashOf("key")))?.key.expiresAtMs, first.previousUntilMs);
    const soonMs = nowMs() + 60_000;
    await store.changeKey(tag, id, { expiresAtMs: soonMs });
    assert.equal((await store.readKey(tag, hashOf("key")))?.key.expiresAtMs, soonMs);
    await store.changeKey(tag, id, { expiresAtMs: "never" });

    // A change of the key applies to all its values.
    await store.changeKey(tag, id, { status: "suspended" });
    assert.deepEqual([await by("key"), await by("two")], ["suspended", "suspended"]);
    await store.changeKey(tag, id, { status: "normal", expiresAtMs: nowMs() - 60_000 });
    assert.deepEqual([await by("key"), await by("two")], ["expired_key", "expired_key"]);
    await store.changeKey(tag, id, { expiresAtMs: "never" });
    assert.deepEqual([await by("key"), await by("two")], ["admitted", "admitted"]);

    // Without an overlap: the previous value is refused, and the one before that still works.
    await rotate("three", { overlapMs: 0 });
    assert.deepEqual([await by("key"), await by("two"), await by("three")], ["admitted", "expired_key", "admitted"]);

    // A repeated rotation counts only with a higher revision.
    const before = await rotate("four", { untilMs: nowMs() + 600_000 });
    assert.equal(await by("two"), "expired_key", "an expired value is still known for a while");
    assert.deepEqual(await rotate("old", { untilMs: nowMs() + 600_000 }, before.rotation), before);
    assert.equal(await by("old"), "unknown_key");
    const later = await rotate("five", { untilMs: nowMs() - 60_000 }, before.rotation + 1_000_000);
    assert.equal(later.rotation, before.rotation + 1_000_000);
    assert.deepEqual([await by("four"), await by("five")], ["expired_key", "admitted"]);

    for (let working = 4; working <= KEY_VALUES_MAX; working++) await rotate(`more ${working}`, { overlapMs: 600_000 });
    const beyond = { hash: hashOf("beyond"), overlapMs: 600_000 };
    assert.equal(await store.rotateKey(tag, id, beyond), "too_many");
    assert.deepEqual([await by("beyond"), await by("key")], ["unknown_key", "admitted"]);
    assert.equal(await store.rotateKey(tag, "key_none", beyond), undefined);
    await rotate("in its place", { overlapMs: 0 });
    assert.deepEqual(
      [await by("in its place"), await by(`more ${KEY_VALUES_MAX}`), await by("key")],
      ["admitted", "expired_key", "admitted"],
      "a value that replaces the newest one does not add to their number",
    );
    await store.revokeKey(tag, id);
    assert.deepEqual([await by("key"), await by("five")], ["revoked_key", "revoked_key"]);
    assert.equal((await rotate("last", { overlapMs: 0 })).status, "revoked");
    assert.equal(await by("last"), "unknown_key");
  });

  test("of former values that ended at the same time, the one with the smallest hash is forgotten first", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Rforget");
    const endMs = nowMs() - 60_000;
    const former: string[] = [];
    let revision = nowMs() + 60_000;
    for (let i = 0; i <= KEY_VALUES_MAX; i++) {
      former.push(i === 0 ? "key" : `forget ${i}`);
      await store.rotateKey(tag, "key_Rforget", { hash: hashOf(`forget ${i + 1}`), untilMs: endMs }, ++revision);
    }
    const known = former.map((value) => hashOf(value)).sort();
    // The value that was replaced last stays, whatever its hash.
    const [forgotten] = known.filter((hash) => hash !== hashOf(`forget ${KEY_VALUES_MAX}`));
    const answers = await Promise.all(known.map((hash) => store.readKey(tag, hash)));
    assert.deepEqual(
      known.filter((_, at) => answers[at] === undefined),
      [forgotten],
    );
  });

  test("a closed account gets no key, and creating one that it had again returns it as revoked", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Rclosedkey");
    const had = { id: "key_Rclosedkey", hash: hashOf("key"), group: "big" };
    await store.closeAccount(tag);
    assert.equal((await store.createKey(tag, had))?.status, "revoked");
    assert.equal(await store.createKey(tag, { ...had, id: "key_Rother", hash: hashOf("other") }), undefined);
    assert.equal((await store.listKeys(tag)).length, 1);
  });

  test("the latest use of a key is listed, in whatever order uses are recorded", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Ruses");
    const id = "key_Ruses";
    const use = (atMs: number, by: string) => ({ keyId: id, atMs, from: "192.0.2.7", by });
    assert.equal((await store.listKeys(tag))[0]?.lastUse, undefined);
    await store.noteKeyUses(tag, [use(2_000, "two/1"), { ...use(9_000, "x"), keyId: "key_none" }]);
    assert.deepEqual(
      (await store.listKeys(tag)).map(({ lastUse }) => lastUse),
      [use(2_000, "two/1")],
    );
    await store.noteKeyUses(tag, [use(1_000, "one/1")]);
    await store.noteKeyUses(tag, [use(2_000, "again")]);
    assert.deepEqual((await store.listKeys(tag))[0]?.lastUse, use(2_000, "two/1"));
    await store.noteKeyUses(tag, [use(3_000, "")]);
    assert.deepEqual((await store.listKeys(tag))[0]?.lastUse, use(3_000, ""));
    await store.noteKeyUses(tagOf("Rnobody"), [use(1_000, "")]);
    assert.equal(await store.getAccount(tagOf("Rnobody")), undefined);
  });

  test("a repeated change and a repeated rotation both count, whichever comes first", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Rboth");
    const id = "key_Rboth";
    const rotate = (value: string, revision: number) =>
      store.rotateKey(tag, id, { hash: hashOf(value), untilMs: 1 }, revision);
    const facts = async (value: string) => {
      const key = (await store.readKey(tag, hashOf(value)))?.key;
      return key && [key.status, key.name, key.expiresAtMs];
    };
    await store.changeKey(tag, id, { name: "later" }, 20);
    await rotate("two", 10);
    assert.deepEqual(
      [await facts("key"), await facts("two")],
      [
        ["normal", "later", 1],
        ["normal", "later", undefined],
      ],
    );
    await rotate("three", 40);
    await store.changeKey(tag, id, { status: "suspended" }, 30);
    assert.deepEqual([(await facts("three"))?.[0], await facts("two")], ["suspended", ["suspended", "later", 1]]);
    await rotate("between", 35);
    assert.equal(await facts("between"), undefined, "a later rotation decides the values");
  });

  test("a repeated write never undoes a later group or plan, and a repeated revocation always counts", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Rreplay", { plan: "free" });
    const laterMs = nowMs() + 600_000;
    const plan = async (...change: [string, number?]) => {
      const account = await store.setPlan(tag, ...change);
      return [account?.plan, account?.planRevision];
    };
    assert.deepEqual(await plan("pro", 2), ["pro", 2]);
    assert.deepEqual(await plan("free", 1), ["pro", 2]);
    assert.deepEqual(await plan("free", 2), ["pro", 2]);
    assert.deepEqual(await plan("free", 5), ["free", 5]);
    const [, now = 0] = await plan("pro");
    assert.ok(Math.abs(Number(now) - nowMs()) < 60_000, "a revision is the store's time");
    assert.deepEqual(await plan("free", 6), ["pro", now]);
    assert.deepEqual(await plan("free", laterMs), ["free", laterMs]);
    assert.deepEqual(await plan("pro"), ["pro", laterMs + 1], "above the last one, whatever the clock says");
    const group = async (group: string, revision?: number) => {
      const key = await store.changeKey(tag, "key_Rreplay", { group }, revision);
      return [key?.group, key?.revision];
    };
    assert.deepEqual(await group("small", 2), ["small", 2]);
    assert.deepEqual(await group("big", 2), ["small", 2]);
    assert.deepEqual(await group("big", laterMs), ["big", laterMs]);
    assert.deepEqual(await group("small"), ["small", laterMs + 1]);
    const revoked = await store.revokeKey(tag, "key_Rreplay", 2);
    assert.deepEqual([revoked?.status, revoked?.revision], ["revoked", laterMs + 2]);
    assert.deepEqual(await store.changeKey(tag, "key_Rreplay", { group: "small" }, laterMs + 9), revoked);
  });

  test("a repeated change counts for each property that was not changed since", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Rapart");
    const laterMs = nowMs() + 1_000_000;
    const change = async (wanted: KeyChange, revision?: number) => {
      const key = await store.changeKey(tag, "key_Rapart", wanted, revision);
      return [key?.group, key?.name, key?.status, key?.revision];
    };
    assert.deepEqual(await change({ name: "Laptop" }, laterMs), ["big", "Laptop", "normal", laterMs]);
    assert.deepEqual(await change({ status: "suspended" }, laterMs - 5), ["big", "Laptop", "suspended", laterMs]);
    assert.deepEqual(await change({ status: "normal" }, laterMs - 5), ["big", "Laptop", "suspended", laterMs]);
    const mixed = { name: "Phone", group: "small", status: "normal" } as const;
    assert.deepEqual(await change(mixed, laterMs - 6), ["small", "Laptop", "suspended", laterMs]);
    assert.deepEqual(await change({ name: "Phone" }), ["small", "Phone", "suspended", laterMs + 1]);
    assert.deepEqual(await change({ status: "normal" }, laterMs - 4), ["small", "Phone", "normal", laterMs + 1]);
    const told = (await store.readNotices(tag, 10)).notices.map(({ ref }) => ref);
    assert.deepEqual(told, [`key_Rapart:${laterMs - 5}`], "named by the revision of the suspension");
    await store.changeAccount(tag, { labels: { team: "red" } }, laterMs);
    const suspended = await store.changeAccount(tag, { status: "suspended" }, laterMs - 5);
    assert.ok(typeof suspended === "object");
    assert.deepEqual([suspended.status, suspended.labels], ["suspended", { team: "red" }]);
    assert.deepEqual([suspended.revision, suspended.labelsRevision], [laterMs - 5, laterMs]);
  });

  test("a card that is given again keeps its original start", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Ragain");
    const fromMs = nowMs() - 1_000;
    const card = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, quota: nanoUsd(5n), reference: "code" };
    const given = await store.grant(tag, { ...card, id: "Ra1", afterPrevious: true, fromMs });
    assert.deepEqual([given?.fromMs, given?.untilMs], [fromMs, fromMs + DAY_MS]);
  });

  test("the same server has the same identity", async () => {
    const { store } = ask();
    const identity = await store.identity();
    assert.match(identity, /^[0-9a-f:,]{32,}$/);
    assert.equal(await store.identity(), identity);
  });

  test("a payment counts once by its id, and the balance minus its holds never leaves its bounds (invariant 10)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Rpay", { funds: 100n });
    const pay = (id: string, amount: bigint) => store.credit(tag, { id, amount, kind: "adjust", note: "n" });
    assert.deepEqual(await pay("a", 50n), { outcome: "credited", balance: 150n });
    assert.deepEqual(await pay("a", 50n), { outcome: "duplicate", balance: 150n });
    assert.deepEqual(await pay("a", 51n), { outcome: "mismatch" });
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(1) })));
    assert.deepEqual(await pay("b", -51n), { outcome: "refused" });
    assert.deepEqual(await pay("b", -50n), { outcome: "credited", balance: 100n });
    assert.deepEqual(await pay("c", 8_999_999_999_999_901n), { outcome: "refused" });
    assert.deepEqual(await pay("c", 8_999_999_999_999_900n), { outcome: "credited", balance: 9_000_000_000_000_000n });
    assert.equal(
      (await store.credit(tagOf("Rnone"), { id: "x", amount: 1n, kind: "topup", note: "" })).outcome,
      "unknown_account",
    );
    const lines = (await store.readLedger(tag, 0, 10)).map((l) => `${l.seq} ${l.debit}>${l.credit} ${l.amount}`);
    assert.deepEqual(lines, [
      "1 topup>acct_Rpay000000 100",
      "2 adjust>acct_Rpay000000 50",
      "3 acct_Rpay000000>adjust 50",
      "4 adjust>acct_Rpay000000 8999999999999900",
    ]);
    assert.deepEqual(
      (await store.readLedger(tag, 1, 2)).map((l) => l.seq),
      [2, 3],
    );
    assert.deepEqual((await store.inspect(tag))?.payments, ["a", "b", "c", "first"]);
  });

  test("a card is given once by its id, and may start after the previous one", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Rcard");
    const card = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, quota: nanoUsd(5n), reference: "code" };
    const first = await store.grant(tag, { ...card, id: "Rc1", afterPrevious: false });
    assert.equal((first?.untilMs ?? 0) - (first?.fromMs ?? 0), DAY_MS);
    assert.deepEqual(await store.grant(tag, { ...card, id: "Rc1", afterPrevious: true }), first);
    const second = await store.grant(tag, { ...card, id: "Rc2", afterPrevious: true });
    assert.equal(second?.fromMs, first?.untilMs);
    assert.equal(await store.grant(tagOf("Rnone"), { ...card, id: "Rc3", afterPrevious: false }), undefined);
    const lines = (await store.readLedger(tag, 1, 10)).map((l) => `${l.kind} ${l.debit}>${l.credit} ${l.amount}`);
    assert.deepEqual(lines, ["card cards:day>ent_Rc1 5", "card cards:day>ent_Rc2 5"]);
  });

  test("what a key may see is read without side effects", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Rview", { plan: "basic" });
    const card = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious: false, reference: "code" };
    await store.grant(tag, { ...card, id: "Rv1", lastsMs: 2 * DAY_MS, quota: undefined });
    await store.grant(tag, { ...card, id: "Rv2", quota: nanoUsd(7n) });
    const before = await store.inspect(tag);
    const view = await store.readKey(tag, hashOf("key"));
    assert.deepEqual(view?.account, {
      id: "acct_Rview00000",
      name: "Rview",
      plan: "basic",
      balance: 1_000n,
      limits: "",
    });
    assert.deepEqual(
      view?.entitlements.map((e) => [e.id, e.quota]),
      [
        ["Rv2", 7n],
        ["Rv1", undefined],
      ],
    );
    assert.equal(view?.key.group, "big");
    assert.equal(await store.readKey(tag, hashOf("other")), undefined);
    assert.deepEqual(await store.inspect(tag), before);
    await store.revokeKey(tag, "key_Rview");
    assert.equal((await store.readKey(tag, hashOf("key")))?.key.status, "revoked");
  });

  test("names may contain any characters that people type", async () => {
    const { store } = ask();
    const tag = tagOf("Rnames");
    const name = 'Ünï "quoted" \\ {a:x} | 漢字 \u2028';
    await store.createAccount({ tag, name, plan: 'pl"an' });
    await store.createKey(tag, { id: "key_Rnames", hash: hashOf("key"), group: "gr/ou:p" });
    await store.credit(tag, { id: "pay/1", amount: 500n, kind: "topup", note: name });
    const groups = [terms({ group: "gr/ou:p" })];
    const request = admitAsk({ tag, requestId: ridOf(1), plans: ['pl"an'], groups });
    const permit = admitted(await store.admit(request));
    await store.settle(settleAsk(request, permit, { amount: 3n, model: "m/1", memo: '{"a":"\\u0000"}' }));
    const state = await store.inspect(tag);
    assert.deepEqual([state?.account.name, state?.ledger[0]?.memo], [name, name]);
    assert.deepEqual(Object.values(state?.days ?? {}), [{ "gr/ou:p|m/1|key_Rnames": 3n }]);
  });
}
