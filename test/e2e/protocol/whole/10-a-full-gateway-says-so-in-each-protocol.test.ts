/**
 * ARCHITECTURE.md promise 10: if the gateway is full and no single account is the cause, every client gets 503 in its
 * protocol's form, and operators still get answers.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, PROTOCOL_LIST } from "./asking.ts";

const ADMIN = { authorization: "Bearer test-admin-token" };
const IN_FLIGHT_MAX = 6;
/** `error.type` and `error.code` of each protocol. */
const SHAPES = {
  chat: { type: "server_error", code: "server_is_overloaded" },
  messages: { type: "overloaded_error", code: undefined },
  responses: { type: "server_error", code: "server_is_overloaded" },
} as const;

test("six requests of three accounts fill the gateway; the seventh of any account is refused until they end", async (t) => {
  const here = await startGatewayHere({
    config: (places) => testConfig(places, { overload: { in_flight_max: IN_FLIGHT_MAX } }),
  });
  t.after(async () => {
    here.simulator.release();
    await here.close();
  });
  const accounts = await Promise.all([here.account(), here.account(), here.account()]);
  const late = await here.account();
  here.simulator.hold();
  const running = accounts.flatMap(({ key }) => [ask(here, "chat", key), ask(here, "chat", key, { stream: true })]);
  await here.simulator.waitFor(IN_FLIGHT_MAX);

  for (const protocol of PROTOCOL_LIST) {
    const reply = await ask(here, protocol, late.key);
    const { error } = (await reply.json()) as { error: Record<string, unknown> };
    assert.deepEqual([reply.status, error.cause], [503, "overloaded"], protocol);
    assert.equal(error.type, SHAPES[protocol].type);
    assert.equal(error.code, SHAPES[protocol].code);
    assert.ok(Number(reply.headers.get("retry-after")) >= 1);
    assert.equal(reply.headers.get("connection"), "close", "the front opens a new connection for its next request");
  }
  for (const path of ["/healthz", "/readyz", "/metrics", "/admin/v1/accounts"]) {
    const reply = await fetch(here.adminUrl + path, { headers: ADMIN });
    const text = await reply.text();
    assert.equal(reply.status, 200, `${path}: ${text}`);
    if (path === "/metrics") {
      assert.match(text, /^tollgate_pressure 1$/m);
      assert.match(text, /^tollgate_shed_total\{point="headers"\} 3$/m);
    }
  }
  assert.equal(here.simulator.count, IN_FLIGHT_MAX, "no refused request is sent to an upstream");

  here.simulator.release();
  for (const reply of await Promise.all(running)) {
    assert.equal(reply.status, 200);
    await reply.text();
  }
  await assertAtRest(here, late);
  const after = await ask(here, "messages", late.key);
  assert.equal(after.status, 200, "it recovers by itself");
  assert.notEqual(after.headers.get("connection"), "close");
  await after.text();
  for (const account of [...accounts, late]) await assertAtRest(here, account);
  assert.equal((await here.store.readLedger(late.tag, 0, 100)).filter(({ kind }) => kind === "usage").length, 1);
});
