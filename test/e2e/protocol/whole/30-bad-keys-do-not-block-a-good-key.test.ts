/** docs/failure-model.md row 30: bad keys from a shared address do not affect the other clients at that address. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { FAILED_KEY_LIMITS } from "../../../../src/accept/failed-keys.ts";
import { createSeenKeys } from "../../../../src/admit/seen-keys.ts";
import { hashKey, newAccountTag, newKey } from "../../../../src/values/key.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { ask, assertAtRest, bodyOf, errorOf, PROTOCOL_LIST } from "./asking.ts";
import { HandClock } from "./hand-clock.ts";

const OFFICE = { headers: { "x-forwarded-for": "203.0.113.7" } };
const ELSEWHERE = { headers: { "x-forwarded-for": "203.0.113.8" } };
const unknownKey = () => newKey(newAccountTag(randomBytes), randomBytes).text;

async function startBehindFront(clock = new HandClock()): Promise<GatewayHere & { readonly clock: HandClock }> {
  const config = (places: Parameters<typeof testConfig>[0]) => `${testConfig(places)}trust_proxy: [127.0.0.1/32]\n`;
  return { ...(await startGatewayHere({ config, clock })), clock };
}

/** Status and cause of one request from the office. */
async function outcome(here: GatewayHere, key: string, options: typeof OFFICE = OFFICE): Promise<string> {
  const reply = await ask(here, "chat", key, {}, options);
  return reply.status === 200 ? "200" : `${reply.status} ${(await errorOf(reply)).cause}`;
}

/** Sends well-formed unknown keys until the address has neither failures nor lookups left. */
async function flood(here: GatewayHere): Promise<string[]> {
  const { failuresPerMinute, lookUpsPerSecond } = FAILED_KEY_LIMITS;
  const outcomes: string[] = [];
  for (let i = 0; i < failuresPerMinute + lookUpsPerSecond + 5; i++) outcomes.push(await outcome(here, unknownKey()));
  return outcomes;
}

const bad = async (here: GatewayHere) => {
  const { body } = await here.gateway.metrics.page();
  return Number(/tollgate_bad_keys_total (\d+)/.exec(body)?.[1]);
};

test("keys that were valid recently keep working while a flood of unknown keys has used all lookups of their address", async (t) => {
  const here = await startBehindFront();
  t.after(() => here.close());
  const [known, poor, late] = [await here.account(), await here.account({ usd: "0" }), await here.account()];
  assert.equal(await outcome(here, known.key), "200");
  assert.equal(await outcome(here, poor.key), "403 insufficient_balance");
  const outcomes = await flood(here);
  assert.deepEqual(
    [outcomes.slice(0, 20), outcomes.slice(20)].map((part) => [...new Set(part)]),
    [["401 unknown_key"], ["429 bad_keys"]],
  );
  assert.equal(await bad(here), outcomes.length, "every failure is counted");
  for (const protocol of PROTOCOL_LIST) {
    assert.equal((await ask(here, protocol, known.key, {}, OFFICE)).status, 200);
  }
  assert.equal(
    await outcome(here, poor.key),
    "403 insufficient_balance",
    "a key that is refused for another reason is not counted as bad",
  );
  const models = await fetch(`${here.url}/v1/models`, {
    headers: { authorization: `Bearer ${known.key}`, ...OFFICE.headers },
  });
  assert.equal(models.status, 200);

  // A key that this process has not seen competes with the flood, but only at its address and only for a second at a
  // time.
  const first = await ask(here, "chat", late.key, {}, OFFICE);
  assert.deepEqual([first.status, first.headers.get("retry-after")], [429, "1"]);
  assert.match((await errorOf(first)).message, /was not looked up/);
  assert.equal(await outcome(here, late.key, ELSEWHERE), "200");
  assert.equal(await outcome(here, late.key), "200", "the key is known now");
  here.clock.advance(1_000);
  assert.equal(await outcome(here, (await here.account()).key), "200", "lookups are allowed again in the next second");

  // The gateway remembers that the key was valid, not that it is: the next request after a revocation is refused
  // (ARCHITECTURE.md promise 4).
  await here.store.revokeKey(known.tag, known.keyId);
  assert.equal(await outcome(here, known.key, ELSEWHERE), "401 revoked_key");
  assert.equal(await outcome(here, known.key), "429 bad_keys");
  for (const account of [known, poor, late]) await assertAtRest(here, account);
});

test("a program with a revoked key uses up none of the lookups of its shared address", async (t) => {
  const here = await startBehindFront();
  t.after(() => here.close());
  const revoked = await here.account();
  await here.store.revokeKey(revoked.tag, revoked.keyId);
  for (let i = 0; i < 3 * FAILED_KEY_LIMITS.failuresPerMinute; i++) {
    assert.equal(await outcome(here, revoked.key), "401 revoked_key");
  }
  assert.equal(await outcome(here, "sk-typo"), "401 malformed_key");
  assert.equal(await outcome(here, (await here.account()).key), "200");
});

test("a valid key is answered after two bad keys on the same connection", async (t) => {
  const here = await startBehindFront();
  t.after(() => here.close());
  const { key, tag } = await here.account();
  const body = JSON.stringify(bodyOf("chat"));
  const request = (presented: string) =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${presented}\r\nX-Forwarded-For: 203.0.113.7\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const client = new RawSocket({ port: here.port }).send(request(unknownKey()), request("sk-typo"), request(key));
  const responses = await client.responses(3);
  client.close();
  assert.deepEqual(
    responses.map(({ status }) => status),
    [401, 401, 200],
  );
  await here.requestEnd(responses[2]?.headers["x-request-id"] ?? "");
  await assertAtRest(here, { tag });
});

test("the number of remembered valid keys is bounded, and bad keys displace none of them", () => {
  const seen = createSeenKeys(new HandClock(), 3);
  const hash = (text: string) => hashKey(text);
  for (const text of ["a", "b", "c"]) seen.noteGood(hash(text));
  seen.noteGood(hash("a"));
  for (let i = 0; i < 20_000; i++) seen.noteBad(hash(`bad ${i}`), "unknown_key");
  seen.noteGood(hash("d"));
  assert.deepEqual(
    ["a", "b", "c", "d"].map((text) => seen.wasGood(hash(text))),
    [true, false, true, true],
  );
  seen.noteBad(hash("a"), "revoked_key");
  assert.equal(seen.wasGood(hash("a")), false);
});
