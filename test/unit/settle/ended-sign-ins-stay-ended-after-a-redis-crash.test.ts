/**
 * docs/failure-model.md row B1, invariants 32 and 33: a Redis that restarts without its last writes has sign-in links that were
 * already taken and sessions that were already ended. The journal removes them again, and nothing that was kept since.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { journaledStore } from "../../../src/settle/journal/journaled-store.ts";
import type { AdminRecord } from "../../../src/settle/journal.ts";
import { replay } from "../../../src/settle/recovery/replayed-writes.ts";
import { type Store, StoreError, UnconfirmedError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { overlay } from "../../../src/store/overlay.ts";
import type { SignInKind, SignInOwner } from "../../../src/store/sign-ins.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis } from "../../rig/redis.ts";
import { openStandingStore } from "../console/test-store.ts";
import { tagOf } from "../store/asks.ts";
import { PATIENT } from "../store/benches.ts";

const TAG = tagOf("Comesin");
const OWNERS = [TAG, "operator"] as const;

/** The store's writes with their records, as a journal reads them. */
function journaled(store: Store) {
  const records: AdminRecord[] = [];
  const journal = {
    adminWrite: async (record: AdminRecord) => void records.push(JSON.parse(JSON.stringify(record)) as AdminRecord),
  };
  return { records, writes: journaledStore(store, journal, (_, error) => assert.fail(String(error))) };
}

const keep = (store: Store, owner: SignInOwner, kind: SignInKind, id: string) =>
  store.keepSignIn(owner, { kind, id, data: "{}" });
const idsOf = async (store: Store, owner: SignInOwner) =>
  (await store.listSignIns(owner)).map(({ kind, id }) => `${kind} ${id}`);

test("a taken link and ended sessions that a crash restored are removed again, and newer ones are kept", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openStore({ kind: "redis", url: new Secret(redis.url) }, PATIENT);
  t.after(() => store.close());
  const { records, writes } = journaled(store);
  const kept = [
    ["link", "taken"],
    ["session", "ended"],
    ["passkey", "dropped"],
    ["passkey", "again"],
    ["session", "runs"],
  ] as const;
  for (const owner of OWNERS) for (const [kind, id] of kept) await keep(writes, owner, kind, id);
  assert.match(await redis.command("SAVE"), /^\+OK/);
  for (const owner of OWNERS) {
    assert.equal((await writes.takeSignIn(owner, "link", "taken"))?.id, "taken");
    assert.equal(await writes.takeSignIn(owner, "link", "guessed"), undefined);
    assert.equal(await writes.dropSignIn(owner, "session", "ended"), true);
    assert.equal(await writes.dropSignIns(owner, "passkey"), 2);
  }
  assert.equal(records.length, 8, "a guess is not recorded");
  await redis.crash();
  await store.check();
  for (const owner of OWNERS) {
    assert.deepEqual(
      await idsOf(store, owner),
      kept.map((one) => one.join(" ")),
      "the crash lost their ends",
    );
    // With an id that was dropped before.
    await keep(store, owner, "passkey", "again");
  }
  for (const record of [...records, ...records.toReversed()]) assert.equal(await replay(record, store), undefined);
  for (const owner of OWNERS) assert.deepEqual(await idsOf(store, owner), ["session runs", "passkey again"]);
});

test("a taken link is recorded in the journal even if no replica has confirmed it", async (t) => {
  const store = await openStandingStore(t);
  await keep(store, TAG, "link", "taken");
  const { records, writes } = journaled(
    overlay(store, {
      async takeSignIn(...ask) {
        throw new UnconfirmedError("replicas", await store.takeSignIn(...ask));
      },
    }),
  );
  await assert.rejects(writes.takeSignIn(TAG, "link", "taken"), UnconfirmedError);
  await keep(store, TAG, "link", "taken");
  for (const record of records) await replay(record, store);
  assert.deepEqual(await idsOf(store, TAG), []);
});

test("the end of a session is recorded in the journal even if it is unknown whether the store has ended it", async (t) => {
  const store = await openStandingStore(t);
  for (const id of ["a", "b"]) await keep(store, TAG, "session", id);
  const away = async () => {
    throw new StoreError("unavailable", "away");
  };
  const { records, writes } = journaled(overlay(store, { dropSignIn: away, dropSignIns: away }));
  await assert.rejects(writes.dropSignIn(TAG, "session", "a"), StoreError);
  await assert.rejects(writes.dropSignIns(TAG, "session"), StoreError);
  for (const record of records) await replay(record, store);
  assert.deepEqual(await idsOf(store, TAG), []);
});
