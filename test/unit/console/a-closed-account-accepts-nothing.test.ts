import assert from "node:assert/strict";
import { test } from "node:test";
import { settingsOf, testConfig } from "../../rig/gateway.ts";
import { startConsole } from "./running-console.ts";

test("repeating the grant of a card answers as before, another card is refused, and no line is written", async (t) => {
  const { catalog } = settingsOf(testConfig({ upstreamUrl: "http://127.0.0.1:9", dir: "unused" }));
  const { ask, store } = await startConsole(t, { catalog: () => catalog });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const [card] = catalog.cards.keys();
  const give = (id: string) => ask("POST", "/admin/v1/accounts/alice/gifts", { card, id });
  assert.equal((await give("first")).status, 201);
  assert.equal((await ask("POST", "/admin/v1/accounts/alice/close")).status, 200);
  assert.equal((await give("first")).status, 200);
  const refused = await give("second");
  assert.deepEqual([refused.status, refused.json.error?.code], [409, "account_closed"]);
  const { tag } = (await store.findAccount("alice")) ?? assert.fail();
  assert.deepEqual(
    (await store.readLedger(tag, 0, 10)).map(({ kind }) => kind),
    ["card"],
  );
});

test("the budgets of a closed account cannot be changed", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const limit = (month: string) => ask("PUT", "/admin/v1/accounts/alice/limits", { budgets_usd: { month } });
  assert.equal((await limit("50.00")).status, 200);
  await ask("POST", "/admin/v1/accounts/alice/close");
  const refused = await limit("60.00");
  assert.deepEqual([refused.status, refused.json.error?.code], [409, "account_closed"]);
  assert.equal((await ask("GET", "/admin/v1/accounts/alice")).json.limits.budgets_usd.month, "50.00");
});
