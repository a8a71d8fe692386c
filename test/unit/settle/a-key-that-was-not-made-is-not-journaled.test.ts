/**
 * If a key with the same hash exists, the store makes no second one and answers with the first. The journal then has no
 * record of the key that was asked for: a store that is restored from the journal would else get a key that nobody made.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { journaledStore } from "../../../src/settle/journal/journaled-store.ts";
import type { AdminRecord } from "../../../src/settle/journal.ts";
import type { Store } from "../../../src/store/contract.ts";
import type { AccountTag, KeyHash } from "../../../src/values/key.ts";

test("the creation of a key is journaled if the store has made it, also in an earlier attempt", async () => {
  const [tag, hash] = ["TAG" as AccountTag, "hash" as KeyHash];
  const recordsOf = async (madeId: string | undefined) => {
    const records: AdminRecord[] = [];
    const store = {
      createKey: async () => madeId && { id: madeId, hash },
      getAccount: async () => undefined,
    } as unknown as Store;
    const journal = { adminWrite: async (record: AdminRecord) => void records.push(record) };
    await journaledStore(store, journal, () => assert.fail()).createKey(tag, { id: "key_new", hash, group: "money" });
    return records.map(({ kind, id }) => [kind, id]);
  };
  assert.deepEqual(await recordsOf("key_new"), [["key_create", "key_new"]]);
  assert.deepEqual(await recordsOf("key_old"), []);
  assert.deepEqual(await recordsOf(undefined), []);
});
