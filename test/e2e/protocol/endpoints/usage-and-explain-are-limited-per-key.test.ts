/** `GET /v1/usage` and `POST /v1/explain` read the store and are free: a key may send 120 of them per minute. */
import assert from "node:assert/strict";
import test from "node:test";
import { SIDE_ASKS_PER_MINUTE, SideRate } from "../../../../src/endpoints/rate.ts";
import { answerOf, type Refusal } from "../../../../src/values/errors.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { bodyOf } from "../whole/asking.ts";
import { HandClock } from "../whole/hand-clock.ts";

test("a request above the limit gets 429 with the time to wait; another key and the model path are not affected", async (t) => {
  const clock = new HandClock();
  const here = await startGatewayHere({ clock });
  t.after(() => here.close());
  const [busy, other] = [await here.account(), await here.account()];
  const ask = (path: string, key: string, body?: object) =>
    fetch(here.url + path, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
  const explain = (key: string) => ask("/v1/explain?protocol=chat", key, bodyOf("chat"));
  for (let i = 0; i < SIDE_ASKS_PER_MINUTE; i++) {
    assert.equal((await (i % 2 === 0 ? ask("/v1/usage", busy.key) : explain(busy.key))).status, 200);
  }
  for (const refused of [await ask("/v1/usage", busy.key), await explain(busy.key)]) {
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get("retry-after"), "1");
    const { error } = (await refused.json()) as { error: { cause: string; message: string } };
    assert.equal(error.cause, "requests");
    assert.match(error.message, /120 of these requests per minute/);
  }
  assert.equal((await ask("/v1/usage", other.key)).status, 200);
  assert.equal((await ask("/v1/models", busy.key)).status, 200);
  const answered = await ask("/v1/chat/completions", busy.key, bodyOf("chat"));
  assert.equal(answered.status, 200, await answered.text());
  clock.advance(1_000);
  assert.equal((await ask("/v1/usage", busy.key)).status, 200, "two more are allowed after a second");
  assert.equal((await ask("/v1/usage", busy.key)).status, 200);
  assert.equal((await ask("/v1/usage", busy.key)).status, 429);
});

test("the time to wait is in whole seconds, and never too short", () => {
  const clock = new HandClock();
  const rate = new SideRate(clock, 1);
  assert.equal(rate.ask("a"), undefined);
  clock.advance(500);
  assert.equal(answerOf(rate.ask("a") as Refusal).retryAfterS, 60);
});

test("the number of remembered keys is bounded; the least recently used is dropped first", () => {
  const rate = new SideRate(new HandClock(), 1, 3);
  for (const key of ["a", "b", "c", "d"]) assert.equal(rate.ask(key), undefined);
  assert.equal(rate.size, 3);
  assert.notEqual(rate.ask("d"), undefined);
  assert.equal(rate.ask("a"), undefined, "the oldest key was forgotten");
  assert.equal(rate.size, 3);
});
