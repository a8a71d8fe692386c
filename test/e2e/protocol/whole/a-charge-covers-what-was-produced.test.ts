/** ARCHITECTURE.md promise 3: who counted, what it costs, and who pays if nothing was delivered. */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import {
  ask,
  assertAtRest,
  bodyOf,
  errorOf,
  framesOf,
  memoOf,
  PROTOCOL_LIST,
  pathOf,
  recomputed,
  usageLines,
} from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** Prices of the tests' catalog in nano-dollars per token. */
const PRICE = { input: 1_000n, cached: 100n, cacheWrite: 1_250n, output: 10_000n };

for (const protocol of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    const name = `${protocol}${stream ? ", streamed" : ""}`;

    test(`${name}: cached, cache-written and reasoning tokens cost the same, whatever the protocol includes in its totals`, async () => {
      const account = await here.account();
      const usage = { input: 100, cached: 60, cacheWrite: 40, output: 50, reasoning: 20 };
      here.simulator.program({ usage });
      const reply = await ask(here, protocol, account.key, { stream });
      await reply.text();
      await assertAtRest(here, account);
      const lines = await usageLines(here, account);
      const memo = memoOf(lines[0]);
      const { input, cached_input, cache_write, cache_write_1h, output, reasoning } = memo;
      assert.deepEqual(
        { input, cached_input, cache_write, cache_write_1h, output, reasoning },
        { input: 100, cached_input: 60, cache_write: 40, cache_write_1h: 0, output: 50, reasoning: 20 },
      );
      const expected = 100n * PRICE.input + 60n * PRICE.cached + 40n * PRICE.cacheWrite + 50n * PRICE.output;
      assert.equal(lines[0]?.amount, expected);
      assert.equal(memo.counted, "upstream");
      assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n - expected);
    });

    test(`${name}: output of an upstream that does not count is estimated, marked, and never above the hold`, async () => {
      const account = await here.account();
      here.simulator.program({ noUsage: true, text: "x".repeat(400) });
      const reply = await ask(here, protocol, account.key, { stream });
      await reply.text();
      await assertAtRest(here, account);
      const [line] = await usageLines(here, account);
      const memo = memoOf(line);
      assert.equal(memo.counted, "estimate");
      assert.equal(memo.output, 100);
      assert.equal(memo.input, Math.ceil(JSON.stringify(bodyOf(protocol, { stream })).length / 4));
      assert.ok(line && line.amount <= BigInt(memo.hold as string));
      assert.equal(line.amount, recomputed(line));
    });

    test(`${name}: uncounted output above the hold costs the hold`, async () => {
      const account = await here.account();
      here.simulator.program({ noUsage: true, ignoreLimit: true, text: "x".repeat(40_000) });
      const reply = await ask(here, protocol, account.key, { stream });
      await reply.text();
      await assertAtRest(here, account);
      const [line] = await usageLines(here, account);
      assert.equal(String(line?.amount), memoOf(line).hold);
    });

    test(`${name}: a request that fails at the upstream costs the client nothing`, async () => {
      const account = await here.account();
      here.simulator.program({ fault: { status: 500 } }, { times: 2 });
      const reply = await ask(here, protocol, account.key, { stream });
      assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "upstream_unavailable"]);
      assert.equal(reply.headers.get("x-should-retry"), "true");
      assert.match(reply.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
      assert.equal(reply.headers.get("x-tollgate-origin"), "upstream");
      await assertAtRest(here, account);
      assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n);
      assert.deepEqual(await usageLines(here, account), []);
    });
  }

  test(`${protocol}: an answer whose client has disconnected is absorbed, with its cause`, async () => {
    const account = await here.account();
    here.simulator.hold();
    const before = here.simulator.count;
    const leaving = new AbortController();
    const running = ask(here, protocol, account.key, { stream: true }, { signal: leaving.signal });
    await here.simulator.waitFor(before + 1);
    leaving.abort();
    await assert.rejects(running);
    const seen = here.simulator.requests.at(-1);
    assert.equal(await seen?.finished, "aborted");
    here.simulator.release();
    await here.logged((line) => line.msg === "request" && line.cause === "client_gone" && line.protocol === protocol);
    await assertAtRest(here, account);
    assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n);
  });

  test(`${protocol}: a stream that ends before its first word costs the client nothing; its cost is absorbed`, async () => {
    const account = await here.account();
    here.simulator.program({ fault: { stallAfterEvents: 1 } });
    const leaving = new AbortController();
    const reply = await ask(here, protocol, account.key, { stream: true }, { signal: leaving.signal });
    assert.equal(reply.status, 200);
    const reader = reply.body?.getReader();
    await reader?.read();
    leaving.abort();
    await assertAtRest(here, account);
    assert.equal((await here.store.getAccount(account.tag))?.balance, 10_000_000_000n);
    const lines = await usageLines(here, account);
    // The upstream has read the input in any case.
    assert.equal(lines.length, 1);
    for (const line of lines) {
      assert.equal(line.kind, "absorbed");
      assert.match(line.debit + line.credit, /client_gone/);
      assert.equal(line.amount, recomputed(line));
    }
  });

  test(`${protocol}: a client that disconnects in mid-stream is charged for what was produced`, async () => {
    const account = await here.account();
    here.simulator.program({ text: "word ".repeat(40), deltaChars: 5, fault: { stallAfterEvents: 12 } });
    const leaving = new AbortController();
    const reply = await ask(here, protocol, account.key, { stream: true }, { signal: leaving.signal });
    const reader = reply.body?.getReader();
    let text = "";
    // The client has received all twelve events before it disconnects.
    while (framesOf(text).filter((frame) => frame.data !== "").length < 12) {
      const piece = await reader?.read();
      if (!piece || piece.done) break;
      text += Buffer.from(piece.value).toString();
    }
    leaving.abort();
    await assertAtRest(here, account);
    assert.equal(await here.simulator.requests.at(-1)?.finished, "aborted");
    const words = text.split("word ").length - 1;
    const [line, ...more] = await usageLines(here, account);
    assert.deepEqual(more, []);
    assert.equal(line?.kind, "usage");
    const memo = memoOf(line);
    assert.equal(memo.counted, "estimate");
    assert.equal(memo.ended, "client_gone");
    assert.equal(memo.output, Math.ceil((words * 5) / 4));
    assert.ok(words > 2 && line && line.amount > 0n && line.amount <= BigInt(memo.hold as string));
  });

  test(`${protocol}: a stream that its upstream cuts is charged for what was produced`, async () => {
    for (const fault of [{ resetAfterEvents: 12 }, { endAfterEvents: 12 }, { garbageAfterEvents: 12 }]) {
      const account = await here.account();
      here.simulator.program({ text: "word ".repeat(40), deltaChars: 5, fault });
      const reply = await ask(here, protocol, account.key, { stream: true });
      const words = (await reply.text()).split("word ").length - 1;
      await assertAtRest(here, account);
      const [line] = await usageLines(here, account);
      const memo = memoOf(line);
      assert.equal(line?.kind, "usage");
      assert.equal(memo.counted, "estimate");
      assert.match(String(memo.ended), /^upstream_/);
      assert.equal(memo.output, Math.ceil((words * 5) / 4));
      assert.equal(line?.amount, recomputed(line as never));
    }
  });
}

test("the usage chunk is sent only to a client that asked for it", async () => {
  const account = await here.account();
  for (const asked of [true, false]) {
    const fields = asked ? { stream: true, stream_options: { include_usage: true } } : { stream: true };
    const text = await (await ask(here, "chat", account.key, fields)).text();
    assert.equal(text.includes('"choices":[]'), asked);
    assert.ok(here.simulator.requests.at(-1)?.body.includes('"include_usage":true'));
  }
  assert.equal(here.simulator.requests.at(-1)?.path, pathOf("chat"));
});
