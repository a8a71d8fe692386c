/** docs/failure-model.md row 35: refused, lowered or unchanged, exact to the nano-dollar, on all three protocols. */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import {
  ask,
  assertAtRest,
  bodyOf,
  errorOf,
  type Fields,
  LIMIT_FIELD,
  memoOf,
  PROTOCOL_LIST,
  usageLines,
} from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

/** In nano-dollars per token: the most expensive input is a one-hour cache write, at twice the price of input. */
const INPUT_NANO = 2_000n;
const OUTPUT_NANO = 10_000n;
const LIMIT = 400;
const USEFUL_MIN = 16;

function holdOf(protocol: Protocol, fields: Fields, output: number): bigint {
  const bytes = Buffer.byteLength(JSON.stringify(bodyOf(protocol, fields)));
  return BigInt(Math.ceil(bytes / 3)) * INPUT_NANO + BigInt(output) * OUTPUT_NANO;
}

async function accountWith(nano: bigint): Promise<TestAccount> {
  const account = await here.account({ usd: "0" });
  const payment = { id: `exact-${account.tag}`, amount: nano, kind: "topup", note: "test" } as const;
  if (nano > 0n) assert.equal((await here.store.credit(account.tag, payment)).outcome, "credited");
  return account;
}

async function refusedWith(protocol: Protocol, nano: bigint, fields: Fields = {}): Promise<void> {
  const account = await accountWith(nano);
  const before = here.simulator.count;
  const reply = await ask(here, protocol, account.key, fields);
  assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "insufficient_balance"]);
  assert.equal(here.simulator.count, before, "nothing is sent to the upstream");
  await assertAtRest(here, account);
  assert.equal((await here.store.getAccount(account.tag))?.balance, nano);
}

function lastBody(): Fields {
  const seen = here.simulator.requests.at(-1);
  assert.ok(seen);
  return seen.json as Fields;
}

function limitSeen(protocol: Protocol): unknown {
  return lastBody()[LIMIT_FIELD[protocol]];
}

for (const protocol of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    const fields = { stream };
    const name = `${protocol}${stream ? ", streamed" : ""}`;

    test(`${name}: with funds of zero, one nano-dollar, or one below the useful minimum a request gets 403`, async () => {
      await refusedWith(protocol, 0n, fields);
      await refusedWith(protocol, 1n, fields);
      await refusedWith(protocol, holdOf(protocol, fields, USEFUL_MIN) - 1n, fields);
    });

    test(`${name}: with funds of exactly the hold a request passes unchanged`, async () => {
      const account = await accountWith(holdOf(protocol, fields, LIMIT));
      const reply = await ask(here, protocol, account.key, fields);
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get("x-tollgate-clamped"), null);
      await reply.text();
      assert.equal(limitSeen(protocol), LIMIT);
      await assertAtRest(here, account);
    });

    test(`${name}: with one nano-dollar less the limit is lowered, reported, and sent upstream`, async () => {
      const funds: [bigint, number][] = [
        [holdOf(protocol, fields, LIMIT) - 1n, LIMIT - 1],
        [holdOf(protocol, fields, USEFUL_MIN), USEFUL_MIN],
      ];
      for (const [nano, limit] of funds) {
        const account = await accountWith(nano);
        const reply = await ask(here, protocol, account.key, fields);
        assert.equal(reply.status, 200, String(nano));
        assert.equal(reply.headers.get("x-tollgate-clamped"), `${LIMIT_FIELD[protocol]}=${limit}`);
        await reply.text();
        assert.equal(limitSeen(protocol), limit);
        await assertAtRest(here, account);
        const [line] = await usageLines(here, account);
        const balance = (await here.store.getAccount(account.tag))?.balance ?? -1n;
        assert.ok(balance >= 0n && line !== undefined && balance === nano - line.amount);
      }
    });
  }
}

for (const protocol of ["chat", "responses"] as const) {
  test(`${protocol}: without a client limit the default is held and sent`, async () => {
    const account = await here.account();
    const reply = await ask(here, protocol, account.key, { [LIMIT_FIELD[protocol]]: undefined });
    assert.equal(reply.status, 200);
    const seen = lastBody();
    assert.equal(seen.max_completion_tokens ?? seen.max_tokens ?? seen.max_output_tokens, 8_192);
    await assertAtRest(here, account);
  });

  test(`${protocol}, streamed: without a client limit the default is held, and the limit that the funds cover is sent`, async () => {
    const fields = { stream: true, [LIMIT_FIELD[protocol]]: undefined };
    const name = protocol === "chat" ? "max_completion_tokens" : LIMIT_FIELD[protocol];
    const hold = holdOf(protocol, fields, 8_192);
    const most = holdOf(protocol, fields, 32_000);
    for (const [funds, limit] of [
      [hold, 8_192],
      [most - 1n, 31_999],
      [most, 32_000],
      [2n * most, 32_000],
    ] as const) {
      const account = await accountWith(funds);
      const reply = await ask(here, protocol, account.key, fields);
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get("x-tollgate-clamped"), limit < 32_000 ? `${name}=${limit}` : null);
      await reply.text();
      const seen = lastBody();
      assert.equal(seen.max_completion_tokens ?? seen.max_tokens ?? seen.max_output_tokens, limit);
      await assertAtRest(here, account);
      const [line] = await usageLines(here, account);
      assert.equal(memoOf(line).hold, String(hold));
    }
  });

  test(`${protocol}, streamed: with one nano-dollar less than the default costs the limit is lowered, reported and sent`, async () => {
    const fields = { stream: true, [LIMIT_FIELD[protocol]]: undefined };
    const account = await accountWith(holdOf(protocol, fields, 8_192) - 1n);
    const reply = await ask(here, protocol, account.key, fields);
    const name = protocol === "chat" ? "max_completion_tokens" : LIMIT_FIELD[protocol];
    assert.equal(reply.headers.get("x-tollgate-clamped"), `${name}=8191`);
    await reply.text();
    const seen = lastBody();
    assert.equal(seen.max_completion_tokens ?? seen.max_tokens ?? seen.max_output_tokens, 8_191);
    await assertAtRest(here, account);
  });
}

test("messages: a thinking budget is lowered with its limit, or switched off if none fits", async () => {
  const fields = { max_tokens: 4_000, thinking: { type: "enabled", budget_tokens: 3_000 } };
  const cases: [number, unknown][] = [
    [3_500, { type: "enabled", budget_tokens: 3_000 }],
    [2_000, { type: "enabled", budget_tokens: 1_999 }],
    [500, { type: "disabled" }],
  ];
  for (const [limit, thinking] of cases) {
    const account = await accountWith(holdOf("messages", fields, limit));
    const reply = await ask(here, "messages", account.key, fields);
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get("x-tollgate-clamped"), `max_tokens=${limit}`);
    const seen = lastBody();
    assert.equal(seen.max_tokens, limit);
    assert.deepEqual(seen.thinking, thinking);
    await assertAtRest(here, account);
  }
});

test("chat: each of several choices is held, and the limit is lowered for each", async () => {
  const fields = { n: 4 };
  const account = await accountWith(holdOf("chat", fields, 4 * 100 + 3));
  const reply = await ask(here, "chat", account.key, fields);
  assert.equal(reply.headers.get("x-tollgate-clamped"), "max_tokens=100");
  await assertAtRest(here, account);
});
