/** Every write that owners have, for a suspended or closed account: refused before anything else is checked. */
import assert from "node:assert/strict";
import test from "node:test";
import { ENDS_ACCESS } from "../../../../src/console/owner/access.ts";
import { OwnScope } from "../../../../src/console/owner/own-store.ts";
import { ownerRoutes } from "../../../../src/console/owner/routes.ts";
import type { Account } from "../../../../src/store/records.ts";

const SESSION = { owner: "operator", id: "id", way: "link", endsAtMs: 0 } as const;
const SITE = { origin: "https://gate.example", host: "gate.example" };

for (const status of ["suspended", "closed"] as const) {
  test(`the owner of a ${status} account can write only by routes that reduce access`, async () => {
    const scope = new OwnScope();
    const parts = { settings: { support: {} }, catalog: () => ({ groups: new Map() }) };
    const writes = ownerRoutes(parts as unknown as Parameters<typeof ownerRoutes>[0], scope).filter((one) => one.write);
    const refused = writes.filter(({ id }) => !ENDS_ACCESS.has(id));
    assert.deepEqual([...ENDS_ACCESS].sort(), ["endOtherSessions", "endSession", "removePasskey"]);
    assert.ok(refused.length > 10, String(refused.length));
    const account = { name: "alice", status } as Account;
    await scope.run({ session: SESSION, account, site: SITE }, async () => {
      for (const { id, handle } of refused) {
        const input = { params: { name: "alice" }, query: {}, body: {} };
        await assert.rejects(handle(input as never), { status: 403, code: `account_${status}` }, id);
      }
    });
  });
}
