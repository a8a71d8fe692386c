/**
 * docs/failure-model.md rows 37 and G1, ARCHITECTURE.md promise 4: a change of group or a catalog reload while a
 * request runs applies from the next request on.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, memoOf, recomputed, usageLines } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

const IN_FLIGHT = 50;

test("fifty requests in flight settle in their old group and price, later ones in the new", async () => {
  const account = await here.account({ usd: "100" });
  here.simulator.hold();
  const before = here.simulator.count;
  const early = Array.from({ length: IN_FLIGHT }, (_, i) => ask(here, "chat", account.key, { stream: i % 2 === 0 }));
  await here.simulator.waitFor(before + IN_FLIGHT);
  assert.equal((await here.store.inspect(account.tag))?.inFlight, IN_FLIGHT);
  await here.store.changeKey(account.tag, account.keyId, { group: "double-money" });
  const late = Array.from({ length: IN_FLIGHT }, () => ask(here, "chat", account.key));
  await here.simulator.waitFor(before + 2 * IN_FLIGHT);
  here.simulator.release();
  for (const reply of await Promise.all([...early, ...late])) {
    assert.equal(reply.status, 200);
    await reply.text();
    await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  }
  const lines = await usageLines(here, account);
  const count = (group: string) => lines.filter((line) => line.group === group).length;
  assert.deepEqual([lines.length, count("money"), count("double-money")], [2 * IN_FLIGHT, IN_FLIGHT, IN_FLIGHT]);
  for (const line of lines) {
    assert.equal(memoOf(line).multiplier, line.group === "money" ? "1000000" : "2000000");
    assert.equal(line.amount, recomputed(line));
  }
  await assertAtRest(here, account);
});

test("a price that changes while a request runs applies to the next request", async () => {
  const account = await here.account();
  here.simulator.hold();
  const before = here.simulator.count;
  const early = ask(here, "chat", account.key);
  await here.simulator.waitFor(before + 1);
  here.gateway.reload(dearer(here));
  const late = ask(here, "chat", account.key);
  await here.simulator.waitFor(before + 2);
  here.simulator.release();
  for (const reply of await Promise.all([early, late])) assert.equal(reply.status, 200);
  const prices = (await usageLines(here, account)).map((line) => memoOf(line).price_output);
  assert.deepEqual(prices.sort(), ["10000000000", "20000000000"]);
  await assertAtRest(here, account);
});

test("row 29: a stream of a revoked key finishes and is charged", async () => {
  const account = await here.account();
  here.simulator.hold();
  const before = here.simulator.count;
  const running = ask(here, "messages", account.key, { stream: true });
  await here.simulator.waitFor(before + 1);
  await here.store.revokeKey(account.tag, account.keyId);
  here.simulator.release();
  const reply = await running;
  assert.match(await reply.text(), /event: message_stop/);
  await assertAtRest(here, account);
  assert.equal((await usageLines(here, account)).length, 1);
  assert.equal((await ask(here, "messages", account.key)).status, 401);
});

for (const [what, cause] of [
  ["suspended", "suspended"],
  ["closed", "revoked_key"],
] as const) {
  test(`a stream of a ${what} account finishes and is charged; its next request is refused`, async () => {
    const account = await here.account();
    here.simulator.hold();
    const before = here.simulator.count;
    const running = ask(here, "messages", account.key, { stream: true });
    await here.simulator.waitFor(before + 1);
    if (what === "closed") await here.store.closeAccount(account.tag);
    else await here.store.changeAccount(account.tag, { status: what });
    const refused = await ask(here, "messages", account.key);
    assert.deepEqual([refused.status, (await errorOf(refused)).cause], [401, cause]);
    here.simulator.release();
    assert.match(await (await running).text(), /event: message_stop/);
    await assertAtRest(here, account);
    assert.equal((await usageLines(here, account)).length, 1);
    if (what === "closed") return;
    await here.store.changeAccount(account.tag, { status: "normal" });
    assert.equal((await ask(here, "messages", account.key)).status, 200);
  });
}

/** The running settings with twice the output price of chat-1. */
function dearer({ settings }: GatewayHere) {
  const { catalog } = settings;
  const model = catalog.models.get("chat-1");
  assert.ok(model);
  const price = { ...model.price, output: model.price.output * 2n };
  const models = new Map(catalog.models).set("chat-1", { ...model, price });
  return { ...settings, catalog: { ...catalog, models, version: "dearer" } };
}
