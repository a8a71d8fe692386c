/**
 * docs/failure-model.md invariant 33: an administrative write goes to the store before the journal, so that a broken journal
 * refuses none.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { journaledStore } from "../../../src/settle/journal/journaled-store.ts";
import { type AdminRecord, JournalBrokenError } from "../../../src/settle/journal.ts";
import { openStore } from "../../../src/store/open.ts";
import { makeAccount } from "../../rig/gateway.ts";

async function bench(t: test.TestContext, adminWrite: (record: AdminRecord) => Promise<void>) {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-writes-"));
  const store = await openStore({ kind: "embedded", dir: join(dir, "data") });
  t.after(async () => {
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const unrecorded: string[] = [];
  return { store: journaledStore(store, { adminWrite }, ({ kind }) => void unrecorded.push(kind)), unrecorded };
}

test("the operator gets an answer, and each write that is missing in the journal is reported", async (t) => {
  const { store, unrecorded } = await bench(t, async () => {
    throw new JournalBrokenError("no disk");
  });
  const account = await makeAccount(store);
  assert.equal((await store.getAccount(account.tag))?.balance, 10_000_000_000n);
  assert.deepEqual(unrecorded, ["account_create", "credit", "key_create"]);
});

test("a record contains no key text, and a repeated payment is recorded again even if it changed nothing else", async (t) => {
  const records: AdminRecord[] = [];
  const { store } = await bench(t, async (record) => void records.push(record));
  const account = await makeAccount(store);
  const payment = { id: "p", amount: 1n, kind: "topup", note: "" } as const;
  await store.credit(account.tag, payment);
  await store.credit(account.tag, payment);
  await store.credit(account.tag, { ...payment, amount: 2n });
  const made = `account_create ${account.tag}:1`;
  assert.deepEqual(
    records.map(({ kind, id }) => `${kind} ${id}`),
    [
      made,
      ...[made, `credit funds-${account.tag}`],
      ...[made, `key_create ${account.keyId}`],
      ...[made, "credit p"],
      ...[made, "credit p"],
    ],
  );
  const text = JSON.stringify(records, (_, value) => (typeof value === "bigint" ? String(value) : value));
  assert.ok(!text.includes(account.key));
});
