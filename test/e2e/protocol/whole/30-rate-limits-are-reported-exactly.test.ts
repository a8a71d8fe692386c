/** Rates, tokens, concurrency and bad keys (docs/failure-model.md row 30). */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type ConfigPlaces, type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST } from "./asking.ts";
import { HandClock } from "./hand-clock.ts";

/** A group with few tokens and one with little concurrency, in addition to the usual ones. */
function config(places: ConfigPlaces): string {
  const all = { kind: "pay_per_use", models: ["chat-*", "messages-*", "responses-*"] } as const;
  return testConfig(places, {
    trust_proxy: ["127.0.0.1/32"],
    groups: {
      "few-tokens": { ...all, limits: { tokens_per_minute: 60 } },
      "one-at-once": { ...all, limits: { concurrency: 1 } },
    },
  });
}

let here: GatewayHere;
before(async () => {
  // No bucket fills again between two requests.
  here = await startGatewayHere({ config, clock: new HandClock() });
});
after(() => here.close());

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: at two requests a minute the third is refused, with the time to wait`, async () => {
    const account = await here.account({ group: "limited-money" });
    const names =
      protocol === "messages"
        ? [
            "anthropic-ratelimit-requests-limit",
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
          ]
        : ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"];
    for (const left of ["1", "0"]) {
      const reply = await ask(here, protocol, account.key);
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get(names[0] as string), "2");
      assert.equal(reply.headers.get(names[1] as string), left);
      const reset = reply.headers.get(names[2] as string) ?? "";
      assert.match(
        reset,
        protocol === "messages" ? /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/ : /^(\d+m)?\d+(\.\d+)?s$|^\d+ms$/,
      );
    }
    const refused = await ask(here, protocol, account.key);
    assert.deepEqual([refused.status, (await errorOf(refused)).cause], [429, "requests"]);
    // Two per minute refill at one each 30 s.
    assert.equal(refused.headers.get("retry-after"), "30");
    assert.equal(refused.headers.get("x-should-retry"), null);
    await assertAtRest(here, account);
  });

  test(`${protocol}: tokens above the limit per minute get 429`, async () => {
    const account = await here.account({ group: "few-tokens" });
    const first = await ask(here, protocol, account.key);
    assert.equal(first.status, 200);
    await here.requestEnd(first.headers.get("x-request-id") ?? "");
    const refused = await ask(here, protocol, account.key);
    assert.deepEqual([refused.status, (await errorOf(refused)).cause], [429, "tokens"]);
    assert.match(refused.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    const long = Number(refused.headers.get("retry-after")) > 60;
    assert.equal(refused.headers.get("x-should-retry"), long ? "false" : null);
    await assertAtRest(here, account);
  });

  test(`${protocol}: more concurrent requests than the group allows get 429, until one has ended`, async () => {
    const account = await here.account({ group: "one-at-once" });
    here.simulator.hold();
    const before = here.simulator.count;
    const running = ask(here, protocol, account.key);
    await here.simulator.waitFor(before + 1);
    const refused = await ask(here, protocol, account.key);
    assert.deepEqual([refused.status, (await errorOf(refused)).cause], [429, "concurrency"]);
    assert.match(refused.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    here.simulator.release();
    assert.equal((await running).status, 200);
    // ARCHITECTURE.md promise 5: a client that waits for its answers is never refused because of its own last request.
    for (let i = 0; i < 20; i++) {
      const reply = await ask(here, protocol, account.key, { stream: i % 2 === 0 });
      assert.equal(reply.status, 200);
      await reply.text();
    }
    await assertAtRest(here, account);
  });
}

test("an address with over 20 bad keys gets 429 for them, and a valid key there still works", async () => {
  const account = await here.account();
  const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
  const statuses: number[] = [];
  for (let i = 0; i < 22; i++) statuses.push((await ask(here, "chat", "sk-guess", {}, from("203.0.113.7"))).status);
  assert.deepEqual(statuses, [...Array.from({ length: 20 }, () => 401), 429, 429]);
  const refused = await ask(here, "chat", `sk-${"b".repeat(48)}`, {}, from("203.0.113.7"));
  assert.deepEqual([refused.status, (await errorOf(refused)).cause], [429, "bad_keys"]);
  assert.equal(refused.headers.get("retry-after"), "60");
  assert.equal((await ask(here, "chat", account.key, {}, from("203.0.113.7"))).status, 200);
  assert.equal((await ask(here, "chat", "sk-guess", {}, from("203.0.113.8"))).status, 401);
  // Without a trusted address all clients would share the limit, so there is none.
  for (let i = 0; i < 30; i++) assert.equal((await ask(here, "chat", "sk-guess")).status, 401);
});

/** Number of admissions that the store was asked for. */
async function admissions({ gateway }: GatewayHere): Promise<number> {
  const { body } = await gateway.metrics.page();
  return Number(/tollgate_store_seconds_count\{operation="admit"\} (\d+)/.exec(body)?.[1] ?? 0);
}

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: a flood with a key above its request rate costs one store command every quarter of a second`, async (t) => {
    const clock = new HandClock();
    const own = await startGatewayHere({ config, clock });
    t.after(() => own.close());
    const account = await own.account({ group: "limited-money" });
    const wait = async (options: Parameters<typeof ask>[4] = {}) => {
      const reply = await ask(own, protocol, account.key, {}, options);
      assert.deepEqual([reply.status, (await errorOf(reply)).cause], [429, "requests"]);
      const names = [...reply.headers.keys()].filter((name) => name.includes("ratelimit")).sort();
      assert.equal(names.length, 6, "requests and tokens have three headers each: limit, remaining and reset");
      return Number(reply.headers.get("retry-after"));
    };
    for (let i = 0; i < 2; i++) assert.equal((await ask(own, protocol, account.key)).status, 200);
    const before = await admissions(own);
    for (let i = 0; i < 20; i++) await wait();
    const asked = await admissions(own);
    assert.equal(asked, before + 20, "this rate is not treated as a flood");
    const known = await wait();
    for (let i = 0; i < 20; i++) assert.equal(await wait(), known);
    // Nothing in a request could change the answer, so none of it is read.
    assert.equal(await wait({ raw: "{" }), known);
    assert.equal(await admissions(own), asked);
    // If idempotency keys are enabled, it may be the retry of an answered request.
    await wait({ headers: { "idempotency-key": "one" } });
    assert.equal(await admissions(own), asked);
    own.gateway.reload({ ...own.settings, idempotency: { enabled: true, keepMs: 86_400_000 } });
    await wait({ headers: { "idempotency-key": "one" } });
    assert.equal(await admissions(own), asked + 1);
    clock.advance(251);
    for (let i = 0; i < 20; i++) await wait();
    assert.equal(await admissions(own), asked + 2, "the flood continues");
    // For a client that has waited half a second the store is asked as usual.
    clock.advance(501);
    for (let i = 0; i < 3; i++) await wait();
    assert.equal(await admissions(own), asked + 5);
  });
}

test("row 30: malformed keys cost no store command", async () => {
  const commands = () => admissions(here);
  const before = await commands();
  for (let i = 0; i < 200; i++) {
    const noise = `sk-${String(i).padStart(48, "x")}`;
    assert.equal((await ask(here, "chat", noise)).status, 401);
  }
  assert.equal(await commands(), before);
});
