/**
 * A request id has the time of the process that issued it, and a ledger line that of the store, whose clock may be
 * behind.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ownLineRoutes } from "../../../../src/console/owner/lines.ts";
import type { LedgerLine } from "../../../../src/store/records.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { newRequestId, printRequestId } from "../../../../src/values/request-id.ts";
import { systemClock } from "../../../../src/values/time.ts";

const MINUTE_MS = 60_000;
const ISSUED_MS = 1_800_000_000_000;

/**
 * What an owner finds for a request whose line is off by this many minutes from the time in its id, among lines before
 * and after.
 */
async function outcomeOf(minutes: number): Promise<string> {
  const id = newRequestId(ISSUED_MS, (bytes) => Buffer.alloc(bytes, 7));
  const line = (seq: number, atMs: number, reference: string): LedgerLine => ({
    ...{ seq, atMs, kind: "usage", debit: "acct_A1", credit: "revenue:plus", amount: nanoUsd(5n), balance: 5n },
    ...{ reference, group: "plus", model: "chat-1", key: "key_1", memo: "" },
  });
  const before = Array.from({ length: 500 }, (_, n) => line(n + 1, ISSUED_MS - 600 * MINUTE_MS, `before-${n}`));
  const own = line(501, ISSUED_MS + minutes * MINUTE_MS, id);
  const after = Array.from({ length: 50 }, (_, n) => line(n + 502, ISSUED_MS + 5_000 * MINUTE_MS, `after-${n}`));
  const lines = [...before, own, ...after];
  const store = {
    getAccount: async () => ({ lines: lines.length }),
    readLedger: async (_: unknown, last: number, count: number) => lines.slice(last, last + count),
  };
  const routes = ownLineRoutes({ store, clock: systemClock } as never, { tag: "A1" } as never);
  const route = routes.find((one) => one.id === "showOwnRequest") ?? assert.fail();
  const asked = { params: { id: printRequestId(id) }, query: {} };
  const { body } = (await route.handle(asked as never)) as { body: { outcome: string } };
  return body.outcome;
}

test("a line dated before its request is found, as if a clock were minutes behind", async () => {
  for (const minutes of [-9, -1, 0, 1, 60]) assert.equal(await outcomeOf(minutes), "charged", `${minutes} minutes`);
});
