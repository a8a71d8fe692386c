/** The store goes away in the middle of a verification: the answer has the accounts that were verified, and goes on there. */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { overlay } from "../../../src/store/overlay.ts";
import { makeAccount } from "../store/asks.ts";
import { startConsole } from "./running-console.ts";
import { openTestStore } from "./test-store.ts";

test("the first account is told, and the second follows once the store is back", async (t) => {
  const store = await openTestStore(t);
  await makeAccount(store, "Aone", { funds: 5n });
  const second = await makeAccount(store, "Btwo", { funds: 5n });
  let isAway = true;
  const lossy = overlay(store, {
    async readLedger(tag, ...ask) {
      if (isAway && tag === second) throw new StoreError("unavailable", "away");
      return store.readLedger(tag, ...ask);
    },
  });
  const { ask } = await startConsole(t, { store: lossy });
  const page = async (cursor: string) => {
    const { status, json } = await ask("GET", `/admin/v1/ledger/verification${cursor}`);
    return { status, json, ids: json.items?.map(({ id }: { readonly id: string }) => id) };
  };
  const first = await page("");
  assert.deepEqual([first.status, first.ids?.length], [200, 1]);
  assert.notEqual(first.json.next, null);
  const still = await page(`?cursor=${first.json.next}`);
  assert.equal(still.status, 503, "the outage is reported if there are no results");
  isAway = false;
  const rest = await page(`?cursor=${first.json.next}`);
  assert.deepEqual([rest.status, rest.ids, rest.json.next], [200, [`acct_${second}`], null]);
});
