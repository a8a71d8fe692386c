/**
 * The store that an owner's routes use, asked for another account in every possible way: no route has to check this
 * itself.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import test from "node:test";
import { OwnScope, ownStore } from "../../../../src/console/owner/own-store.ts";
import type { Store } from "../../../../src/store/contract.ts";
import { newAccountTag } from "../../../../src/values/key.ts";
import { openTestStore } from "../test-store.ts";

const SESSION = { owner: "operator", id: "id", way: "link", endsAtMs: 0 } as const;
const SITE = { origin: "https://gate.example", host: "gate.example" };

/** What operators and requests use, for any account. */
const NOT_FOR_OWNERS = [
  "admit",
  "changeAccount",
  "closeAccount",
  "createAccount",
  "createCodes",
  "credit",
  "dropSignIns",
  "getCode",
  "grant",
  "listAccounts",
  "listRecords",
  "renameAccount",
  "setAccountLimits",
  "setPlan",
  "takeSignIn",
  "voidCode",
] as const satisfies readonly (keyof Store)[];

test("no call reaches another account, by its tag, its name or a code", async (t) => {
  const store = await openTestStore(t);
  const made = async (name: string) => {
    const tag = newAccountTag(randomBytes);
    await store.createAccount({ tag, name, plan: "free" });
    return (await store.getAccount(tag)) ?? assert.fail();
  };
  const [alice, bob] = [await made("alice"), await made("bob")];
  const record = { kind: "session", id: createHash("sha256").update("s").digest("base64url"), data: "{}" } as const;
  await store.keepSignIn(bob.tag, record);
  const scope = new OwnScope();
  const own = ownStore(store, scope);
  const calls = own as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>;
  await scope.run({ session: SESSION, account: alice, site: SITE }, async () => {
    assert.equal((await own.getAccount(alice.tag))?.name, "alice");
    assert.equal((await own.findAccount("alice"))?.tag, alice.tag);
    assert.equal(await own.getAccount(bob.tag), undefined);
    assert.equal(await own.findAccount("bob"), undefined);
    assert.equal(await own.findAccountName("bob"), undefined);
    for (const [name, ...rest] of [
      ["listCards"],
      ["listKeys"],
      ["readAccountBudgets"],
      ["readLedger", 0, 10],
      ["listSignIns"],
      ["findSignIn", record.kind, record.id],
      ["dropSignIn", record.kind, record.id],
      ["keepSignIn", record],
    ] as const) {
      assert.throws(() => calls[name]?.(bob.tag, ...rest), /another account/, name);
    }
    const hash = createHash("sha256").update("a code").digest("hex") as never;
    assert.throws(() => own.redeem({ hash, tag: bob.tag }), /another account/);
    assert.equal((await own.redeem({ hash, tag: alice.tag })).outcome, "unknown_code");
    for (const name of NOT_FOR_OWNERS) assert.throws(() => calls[name], /has no use for/, name);
  });
  assert.deepEqual(
    (await store.listSignIns(bob.tag)).map(({ id }) => id),
    [record.id],
  );
  assert.throws(() => own.findSignIn(alice.tag, record.kind, record.id), /outside of a request/);
});
