/**
 * docs/failure-model.md row B3, invariant 28: Redis refuses connections, is stopped (SIGSTOP), or is behind a network
 * that drops everything. New requests get 503 within 500 ms, and soon after that at once; a running stream continues
 * and ends well; everything is charged once.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, assertAtRest, framesOf } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { assertRefused, type Scene, scene, settledState } from "./rig.ts";

const BETWEEN_MS = 1_000;
/** A refusal by the open breaker involves no wait; the rest is the test machine's own time. */
const AT_ONCE_MS = 200;

const WAYS: Readonly<Record<string, { begin(s: Scene): Promise<void> | void; end(s: Scene): Promise<void> | void }>> = {
  refused: { begin: ({ proxy }) => proxy.refuse(), end: ({ proxy }) => proxy.accept() },
  stopped: { begin: ({ redis }) => redis.freeze(), end: ({ redis }) => redis.thaw() },
  "behind a black hole": { begin: ({ proxy }) => proxy.blackHole(true), end: ({ proxy }) => proxy.blackHole(false) },
};

for (const [name, way] of Object.entries(WAYS)) {
  test(`while Redis is ${name}, new requests get 503 in time and a running stream ends well`, async (t) => {
    // The model server writes an event whenever the test moves its clock.
    const clock = new HandClock();
    const s = await scene(t, { simulator: { clock } });
    assert.equal(await s.status(), "200");
    s.here.simulator.program({ text: "word ".repeat(300), pace: { betweenMs: BETWEEN_MS } });
    const stream = await ask(s.here, "chat", s.account.key, { stream: true });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    const next = async (): Promise<boolean> => {
      let read = false;
      const reading = reader.read().finally(() => {
        read = true;
      });
      while (!read) {
        clock.advance(BETWEEN_MS);
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { value, done } = await reading;
      if (value) text += Buffer.from(value).toString();
      return !done;
    };
    await next();

    await way.begin(s);
    await assertRefused(s, 30);
    await s.opened();
    assert.equal(await s.metric("store_breaker_open"), 1);
    await assertRefused(s, 30, AT_ONCE_MS);
    let frames = 1;
    while (await next()) frames++;
    assert.ok(frames > 3, "the stream continues while the store is unreachable");
    assert.equal(framesOf(text).at(-1)?.data, "[DONE]");
    assert.ok((await s.metric("journal_unsettled")) >= 1, "the charge waits in the journal");

    await way.end(s);
    await s.closed();
    assert.equal(await s.metric("store_breaker_open"), 0);
    assert.equal(await s.status(), "200");
    await settledState(s, 3);
    await assertAtRest(s.here, s.account);
    assert.equal(await s.metric("unrecorded_charges"), 0);
  });
}

test("a store that is unreachable for five seconds makes the gateway not ready, and ready again when it is back", async (t) => {
  const clock = new HandClock();
  const s = await scene(t, { clock });
  const ready = async () => {
    const reply = await fetch(`${s.here.adminUrl}/readyz`);
    return { status: reply.status, text: await reply.text() };
  };
  assert.equal((await ready()).status, 200);
  await s.proxy.refuse();
  await assertRefused(s, 6);
  await s.opened();
  clock.advance(4_999);
  assert.equal((await ready()).status, 200);
  clock.advance(1);
  const unready = await ready();
  assert.equal(unready.status, 503);
  assert.match(unready.text, /breaker is open/);
  // In seconds: the clock has advanced by five since the calls that were given up.
  assert.equal(await s.metric("journal_oldest_seconds"), 5);
  await s.proxy.accept();
  while ((await ready()).status === 503) clock.advance(100);
  await s.closed();
  // Calls given up in the outage are settled by this clock, too.
  while ((await s.metric("journal_unsettled")) > 0) clock.advance(100);
});
