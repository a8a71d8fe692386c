/**
 * The store has made a key, a value of one or codes, and its answer is lost: the gateway asks once more with the same
 * secrets, so that the operator gets those that exist, and none exists that nobody has seen.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import { type AccountTag, readKey } from "../../../src/values/key.ts";
import { CATALOG, startConsole } from "./running-console.ts";
import { holding, openTestStore } from "./test-store.ts";

const DAY = { name: "day", plan: "pro", group: "cards", lastsMs: 86_400_000, starts: "at_redemption" } as const;
const CARDS = new Map([["day", { ...DAY, quotaSpend: undefined }]]);

/** A console whose store does what it is asked, and whose first answer to `operation` is lost. */
async function losing(t: test.TestContext, operation: keyof Store) {
  const store = await openTestStore(t);
  let isLost = false;
  const lossy = holding(store, operation, async () => {
    if (isLost) return;
    isLost = true;
    throw new StoreError("unavailable", "the answer is lost");
  });
  const { ask } = await startConsole(t, { store: lossy, catalog: () => ({ ...CATALOG, cards: CARDS }) });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const isKnown = async (key: string) => {
    const form = readKey(key);
    assert.ok(typeof form === "object");
    return (await store.readKey(form.tag as AccountTag, form.hash)) !== undefined;
  };
  return { store, ask, isKnown };
}

test("a key is the one that the store has", async (t) => {
  const { ask, isKnown } = await losing(t, "createKey");
  const { status, json } = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" });
  assert.equal(status, 201);
  assert.ok(await isKnown(json.key));
  assert.equal((await ask("GET", "/admin/v1/accounts/alice/keys")).json.items.length, 1);
});

test("a new value of a key is the one that works", async (t) => {
  const { ask, isKnown } = await losing(t, "rotateKey");
  const { id } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  const { status, json } = await ask("POST", `/admin/v1/keys/${id}/rotate`, {});
  assert.equal(status, 200);
  assert.ok(await isKnown(json.key));
});

test("codes are shown, and there are no others", async (t) => {
  const { store, ask } = await losing(t, "createCodes");
  const { status, json } = await ask("POST", "/admin/v1/codes", { card: "day", count: 3 });
  assert.equal(status, 201);
  const shown = json.items.map(({ id }: { id: string }) => id);
  assert.deepEqual(
    (await store.listCodes(undefined, 100)).items.map(({ id }) => id),
    shown.toSorted(),
  );
});
