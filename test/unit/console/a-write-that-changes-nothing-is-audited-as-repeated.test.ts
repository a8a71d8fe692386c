/** Whoever reads the audit sees which writes changed something: a second one with the same content is only repeated. */
import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

const WRITES: readonly (readonly [what: string, method: string, path: string, body: object])[] = [
  ["account.set_plan", "PUT", "/admin/v1/accounts/alice/plan", { plan: "pro" }],
  ["account.notify", "PUT", "/admin/v1/accounts/alice/notify", { below_usd: "2.00" }],
  ["account.adjust", "POST", "/admin/v1/accounts/alice/adjustments", { usd: "3.00", id: "adj_1", note: "gift" }],
  ["topup", "POST", "/admin/v1/accounts/alice/topups", { usd: "3.00", id: "pay_1" }],
];

for (const [what, method, path, body] of WRITES) {
  test(`${what}: the first is done, the same again is repeated`, async (t) => {
    const { ask, log } = await startConsole(t);
    await ask("POST", "/admin/v1/accounts", { name: "alice" });
    await ask(method, path, body);
    await ask(method, path, body);
    const outcomes = log.filter((line) => line.what === what).map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ["done", "repeated"]);
  });
}

test("account.rename: the name that an account has already is repeated", async (t) => {
  const { ask, log } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("PUT", "/admin/v1/accounts/alice/name", { name: "bob" });
  await ask("PUT", "/admin/v1/accounts/bob/name", { name: "bob" });
  const outcomes = log.filter(({ what }) => what === "account.rename").map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, ["done", "repeated"]);
});
