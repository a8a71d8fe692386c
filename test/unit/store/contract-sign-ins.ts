/**
 * Records of the console's sign-in (links, sessions, passkeys, spent challenges): kept for a time, taken once, limited in
 * number, separate for each owner.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import {
  type NewSignIn,
  SIGN_IN_DATA_BYTES_MAX,
  SIGN_INS_MAX,
  type SignInKind,
  type SignInOwner,
  SPENT_MAX,
} from "../../../src/store/sign-ins.ts";
import { makeAccount } from "./asks.ts";
import type { Ask } from "./contract.ts";

const PARALLEL = 200;

const record = (kind: SignInKind, id: string, lastsMs?: number): NewSignIn => ({ kind, id, data: "{}", lastsMs });

const idsOf = async (store: Store, owner: SignInOwner) =>
  (await store.listSignIns(owner)).map(({ kind, id }) => `${kind} ${id}`);

export function signInTests(ask: Ask): void {
  test(`of ${PARALLEL} takes of one link at once one succeeds, through the store or its confirming writes`, async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Slink");
    for (const owner of [tag, "operator"] as const) {
      await store.keepSignIn(owner, { ...record("link", "Slink", 3_600_000), data: '{"by":"ü"}' });
      const writers = [store, store.confirming()];
      const asked = Array.from({ length: PARALLEL }, (_, i) => writers[i % 2]?.takeSignIn(owner, "link", "Slink"));
      const taken = (await Promise.all(asked)).filter((one) => one !== undefined);
      assert.deepEqual(
        taken.map(({ kind, id, data }) => [kind, id, data]),
        [["link", "Slink", '{"by":"ü"}']],
      );
      assert.equal(await store.findSignIn(owner, "link", "Slink"), undefined);
      assert.equal(await store.dropSignIn(owner, "link", "Slink"), false);
    }
  });

  test("a record is found and listed as it was kept, oldest first, and a replaced record becomes the newest", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Slist");
    const data = JSON.stringify({ text: '1 2 - "\u0000\n🔑' });
    const long = "Az_-".repeat(86);
    assert.equal(await store.keepSignIn(tag, { kind: "passkey", id: long, data }), "kept");
    await store.keepSignIn(tag, record("session", long, 3_600_000));
    await store.keepSignIn(tag, record("link", "-", 3_600_000));
    const [first, second] = await store.listSignIns(tag);
    assert.deepEqual([first?.kind, first?.id, first?.data, first?.expiresAtMs], ["passkey", long, data, undefined]);
    assert.equal((second?.expiresAtMs ?? 0) - (second?.createdAtMs ?? 0), 3_600_000);
    assert.deepEqual(await store.findSignIn(tag, "passkey", long), first);
    assert.equal(await store.findSignIn(tag, "passkey", "-"), undefined);
    const full = `"${"x".repeat(SIGN_IN_DATA_BYTES_MAX - 2)}"`;
    await store.keepSignIn(tag, { kind: "passkey", id: long, data: full });
    assert.deepEqual(await idsOf(store, tag), [`session ${long}`, "link -", `passkey ${long}`]);
    assert.equal((await store.findSignIn(tag, "passkey", long))?.data, full);
  });

  test("of several changes based on the same read one succeeds", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Swas");
    const change = (data: string, was: string) =>
      store.keepSignIn(tag, { kind: "passkey", id: "a", data, was, only: "known" });
    assert.equal(await change("1", "{}"), "unmet", "there is no such record");
    await store.keepSignIn(tag, record("passkey", "a"));
    const outcomes = await Promise.all(["1", "2", "3"].map((data) => change(data, "{}")));
    assert.deepEqual(outcomes.toSorted(), ["kept", "unmet", "unmet"]);
    const data = `${outcomes.indexOf("kept") + 1}`;
    assert.equal((await store.findSignIn(tag, "passkey", "a"))?.data, data);
    assert.equal(await change("4", "{}"), "unmet");
    assert.equal(await change("5", data), "kept");
  });

  test("above its limit the oldest record of a kind is removed, and a further passkey is refused", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Smany");
    const keep = (kind: SignInKind, n: number) => store.keepSignIn(tag, record(kind, `${n}`));
    await keep("link", 0);
    for (let n = 0; n < SIGN_INS_MAX; n++) {
      assert.equal(await keep("session", n), "kept");
      assert.equal(await keep("passkey", n), "kept");
    }
    assert.equal(await keep("passkey", SIGN_INS_MAX), "too_many");
    assert.equal(await keep("passkey", 0), "kept", "an existing one is replaced");
    // The replacement makes it the newest.
    await keep("session", 0);
    for (const n of [SIGN_INS_MAX, SIGN_INS_MAX + 1]) assert.equal(await keep("session", n), "kept");
    const all = await idsOf(store, tag);
    const of = (kind: SignInKind) => all.filter((one) => one.startsWith(kind)).map((one) => Number(one.split(" ")[1]));
    assert.deepEqual(of("session"), [...Array.from({ length: SIGN_INS_MAX - 3 }, (_, n) => n + 3), 0, 32, 33]);
    assert.deepEqual(of("passkey"), [...Array.from({ length: SIGN_INS_MAX - 1 }, (_, n) => n + 1), 0]);
    assert.deepEqual(of("link"), [0]);
    assert.equal(await store.dropSignIn(tag, "passkey", "7"), true);
    assert.equal(await keep("passkey", SIGN_INS_MAX), "kept");
  });

  test("of many records kept at once as many stay as the limit allows, in any order", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Srace");
    for (const kind of ["session", "passkey"] as const) {
      const asked = Array.from({ length: PARALLEL }, (_, n) => store.keepSignIn(tag, record(kind, `${n}`)));
      const kept = (await Promise.all(asked)).filter((answer) => answer === "kept").length;
      assert.equal(kept, kind === "passkey" ? SIGN_INS_MAX : PARALLEL);
      assert.equal(await store.dropSignIns(tag, kind), SIGN_INS_MAX);
    }
    assert.deepEqual(await store.listSignIns(tag), []);
  });

  test(`of ${PARALLEL} calls that spend one challenge at once one succeeds, and later challenges do not push it out`, async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sspent");
    let calls = 0;
    const spend = (id: string) =>
      store.keepSignIn(tag, { ...record("spent", id, 3_600_000), data: `{"by":"${++calls}"}`, only: "new" });
    const asked = await Promise.all(Array.from({ length: PARALLEL }, () => spend("once")));
    assert.deepEqual(
      asked.filter((answer) => answer !== "unmet"),
      ["kept"],
    );
    for (let n = 1; n < SPENT_MAX; n++) assert.equal(await spend(`${n}`), "kept");
    assert.equal(await spend("more"), "too_many");
    assert.equal(await spend("once"), "unmet");
  });

  test("a removed record is not recreated by a change", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sknown");
    const change = { ...record("passkey", "key"), data: '{"n":2}', only: "known" } as const;
    assert.equal(await store.keepSignIn(tag, change), "unmet");
    await store.keepSignIn(tag, record("passkey", "key"));
    assert.equal(await store.keepSignIn(tag, change), "kept");
    assert.equal((await store.findSignIn(tag, "passkey", "key"))?.data, '{"n":2}');
    await store.dropSignIn(tag, "passkey", "key");
    assert.equal(await store.keepSignIn(tag, change), "unmet");
    assert.deepEqual(await store.listSignIns(tag), []);
  });

  test("owners and kinds are separate", async () => {
    const { store } = ask();
    const [one, other] = [await makeAccount(store, "Sone"), await makeAccount(store, "Sother")];
    const owners = [one, other, "operator"] as const;
    for (const owner of owners) {
      for (const kind of ["link", "session"] as const) await store.keepSignIn(owner, record(kind, "same"));
    }
    await store.keepSignIn(one, record("session", "more"));
    assert.equal(await store.dropSignIns(one, "session"), 2);
    assert.equal(await store.dropSignIns(one, "session"), 0);
    assert.equal((await store.takeSignIn(other, "link", "same"))?.id, "same");
    assert.equal(await store.dropSignIn("operator", "session", "same"), true);
    const left = await Promise.all(owners.map((owner) => idsOf(store, owner)));
    assert.deepEqual(left, [["link same"], ["session same"], ["link same"]]);
    assert.equal(await store.dropSignIns("operator", "link"), 1);
  });

  test("several kinds are removed together, and a record kept with a session requires that the session exists", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sby");
    const by = { kind: "session", id: "runs" } as const;
    const keep = (id: string) => store.keepSignIn(tag, { ...record("passkey", id), only: "new", by });
    assert.equal(await keep("early"), "unmet", "no session");
    await store.keepSignIn("operator", record("session", "runs"));
    await store.keepSignIn(tag, record("link", "runs"));
    assert.equal(await keep("other"), "unmet", "there is one of another owner, and one of another kind");
    await store.keepSignIn(tag, record("session", "runs"));
    assert.equal(await keep("a"), "kept");
    await store.keepSignIn(tag, record("spent", "a"));
    assert.equal(await store.dropSignIns(tag, "link", "session", "passkey"), 3);
    assert.equal(await keep("late"), "unmet");
    assert.deepEqual(await idsOf(store, tag), ["spent a"]);
    await store.dropSignIns("operator", "session");
  });

  test("a repeated removal spares a record that was kept since", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sagain");
    await store.keepSignIn(tag, record("passkey", "key"));
    const keptMs = (await store.findSignIn(tag, "passkey", "key"))?.createdAtMs ?? assert.fail();
    assert.equal(await store.dropSignIn(tag, "passkey", "key", keptMs - 1), false);
    assert.equal(await store.dropSignIn(tag, "passkey", "key", keptMs), true);
  });

  test("a closed account keeps its records", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sclosed");
    await store.keepSignIn(tag, record("session", "one"));
    await store.closeAccount(tag);
    assert.deepEqual(await idsOf(store, tag), ["session one"]);
    assert.equal((await store.takeSignIn(tag, "session", "one"))?.id, "one");
  });

  test("an invalid record is refused before anything is sent", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sbad");
    const wrong: readonly (readonly [SignInOwner, NewSignIn])[] = [
      ["no tag" as SignInOwner, record("link", "a")],
      [tag, record("other" as SignInKind, "a")],
      [tag, record("link", "")],
      [tag, record("link", "a:b")],
      [tag, record("link", "x".repeat(345))],
      [tag, record("link", "a", 0)],
      [tag, record("link", "a", 1.5)],
      [tag, { ...record("link", "a"), data: "ü".repeat(SIGN_IN_DATA_BYTES_MAX / 2 + 1) }],
      [tag, { ...record("link", "a"), data: '"\ud800"' }],
    ];
    for (const [owner, one] of wrong) await assert.rejects(store.keepSignIn(owner, one), RangeError);
    await assert.rejects(store.takeSignIn(tag, "link", "a:b"), RangeError);
    await assert.rejects(store.dropSignIns(tag, "links" as SignInKind), RangeError);
    assert.deepEqual(await store.listSignIns(tag), []);
  });
}

export function signInTimeTests(ask: Ask): void {
  test("an expired record counts as missing, by the store's clock", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Send");
    const madeMs = nowMs();
    for (const id of ["a", "b", "c"]) await store.keepSignIn(tag, record("link", id, 1_000));
    await store.keepSignIn(tag, record("session", "later", 1_001));
    await store.keepSignIn(tag, record("passkey", "never"));
    const found = await store.findSignIn(tag, "link", "a");
    assert.deepEqual([found?.createdAtMs, found?.expiresAtMs], [madeMs, madeMs + 1_000]);
    setTime(madeMs + 999);
    assert.equal((await store.takeSignIn(tag, "link", "a"))?.id, "a");
    setTime(madeMs + 1_000);
    assert.equal(await store.findSignIn(tag, "link", "b"), undefined);
    assert.deepEqual(await idsOf(store, tag), ["session later", "passkey never"]);
    assert.equal(await store.takeSignIn(tag, "link", "b"), undefined);
    assert.equal(await store.dropSignIn(tag, "link", "c"), false);
    setTime(madeMs + 1_001);
    assert.equal(await store.dropSignIns(tag, "session"), 0);
    assert.deepEqual(await idsOf(store, tag), ["passkey never"]);
  });

  test("expired records do not count against the limit, and are deleted by the next write of their owner", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Sswept");
    const madeMs = nowMs();
    for (let n = 0; n < SIGN_INS_MAX; n++) await store.keepSignIn(tag, record("passkey", `${n}`, 1_000));
    assert.equal(await store.keepSignIn(tag, record("passkey", "more")), "too_many");
    setTime(madeMs + 1_000);
    assert.equal(await store.keepSignIn(tag, record("passkey", "more")), "kept");
    // An expired record is kept again.
    await store.keepSignIn(tag, record("session", "again", 1));
    setTime(madeMs + 1_001);
    await store.keepSignIn(tag, record("session", "again", 1_000));
    // If they were only hidden, they would be visible again.
    setTime(madeMs + 999);
    assert.deepEqual(await idsOf(store, tag), ["passkey more", "session again"]);
    setTime(madeMs + 1_001);
  });
}
