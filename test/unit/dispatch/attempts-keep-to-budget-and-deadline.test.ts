/** Retries only within the request's deadline, and only as a share of the running requests. */
import assert from "node:assert/strict";
import test from "node:test";
import {
  ask,
  assertAnswered,
  FakeClock,
  heldServer,
  type Rig,
  rawServer,
  refusalIn,
  rig,
  route,
  settled,
  timeouts,
  upstream,
} from "./rig.ts";

test("a request is not retried after its deadline", async (t) => {
  const slow = await heldServer(t);
  const other = await heldServer(t);
  const clock = new FakeClock();
  const upstreams = [upstream("slow", slow.base, timeouts({ wholeMs: 5_000 })), upstream("other", other.base)];
  for (const [restMs, attempts] of [
    [5_000, 1],
    [5_001, 2],
  ] as const) {
    const { dispatcher } = rig(t, upstreams, clock);
    const deadlineMs = clock.monotonicMs() + restMs;
    const routes = [route("slow"), route("other", { priority: 1 })];
    const running = dispatcher.run(ask(routes, { stream: false, deadlineMs }));
    await slow.next();
    clock.advance(5_000);
    if (attempts === 2) (await other.next()).answer();
    const result = await running;
    assert.equal(result.attempts.length, attempts);
    if (attempts === 1) assert.equal(refusalIn(result).cause, "upstream_timeout");
  }
});

test("a request whose deadline passes while a refusal is read ends with upstream_timeout, whatever was refused", async (t) => {
  const base = await rawServer(t, ({ socket }) => {
    socket.write(`HTTP/1.1 400 No\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`);
  });
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("east", base)], clock);
  const deadlineMs = clock.monotonicMs() + 500;
  const running = dispatcher.run(ask([route("east")], { stream: false, deadlineMs }));
  // One timer belongs to the attempt, the other to the reading of the refusal.
  while (clock.pending < 2) await settled();
  clock.advance(500);
  const result = await running;
  assert.equal(refusalIn(result).cause, "upstream_timeout");
  const [attempt] = result.attempts;
  assert.deepEqual([attempt?.status, attempt?.refusedByUpstream], [400, true], "what is refused is not billed");
  assert.equal(clock.pending, 0);
});

test("of many parallel failures only the budget's share is retried", async (t) => {
  const bad = await heldServer(t);
  const good = await heldServer(t);
  const { dispatcher } = rig(t, [upstream("bad", bad.base), upstream("good", good.base)]);
  const routes = [route("bad"), route("good", { priority: 1 })];
  await assertShare(dispatcher, bad, good);
  // The budget has been returned.
  const later = dispatcher.run(ask(routes, { stream: false }));
  (await bad.next()).answer(500);
  (await good.next()).answer();
  assertAnswered(await later);
});

test("the budget taken for a retry is returned however the retry ends, and at once if there is none", async (t) => {
  const [bad, worse, good] = [await heldServer(t), await heldServer(t), await heldServer(t)];
  const { dispatcher } = rig(t, [
    upstream("bad", bad.base),
    upstream("worse", worse.base),
    upstream("good", good.base),
  ]);
  const run = (second: string, more = {}) =>
    dispatcher.run(ask([route("bad"), route(second, { priority: 1 })], { stream: false, ...more }));
  // One at a time: three failures to return it would use up the budget.
  for (let at = 0; at < 4; at++) {
    const refused = run("good");
    (await bad.next()).answer(400);
    assert.equal((await refused).attempts.length, 1, "a request that is itself at fault is not retried");
    const failing = run("worse");
    (await bad.next()).answer(500);
    (await worse.next()).answer(500);
    assert.equal((await failing).attempts.length, 2);
    const client = new AbortController();
    const leaving = run("worse", { signal: client.signal });
    (await bad.next()).answer(500);
    await worse.next();
    client.abort();
    assert.equal((await leaving).attempts.length, 2);
  }
  const later = run("good");
  (await bad.next()).answer(500);
  (await good.next()).answer();
  assertAnswered(await later);
});

test("a request whose reasoning was refused is repeated without it, outside the retry budget, and waits for a slot", async (t) => {
  const bound = await heldServer(t);
  const [bad, good] = [await heldServer(t), await heldServer(t)];
  const queue = { max: 8, waitMs: 60_000 };
  const settings = upstream("bound", bound.base, { maxConcurrency: 4, queue });
  const { dispatcher } = rig(t, [settings, upstream("bad", bad.base), upstream("good", good.base)]);
  const routes = [route("bound")];
  const withoutReasoning = () => ({ body: Buffer.from('{"less":true}'), token: { chunks: [], model: "less" } });
  const owner = { account: "a", key: "k" } as never;
  const run = (more = {}) => dispatcher.run(ask(routes, { stream: false, owner, withoutReasoning, ...more }));
  const running = Array.from({ length: 8 }, () => run());
  const refusal = '{"error":{"message":"Invalid `signature` in `thinking` block"}}';
  // Four run at once; each returned slot goes to a waiting request, and repeated requests queue after them.
  let refused = 0;
  let answered = 0;
  while (refused + answered < 16) {
    const one = await bound.next();
    if (JSON.stringify(one.json) === '{"less":true}') {
      answered++;
      one.answer();
    } else {
      refused++;
      one.answer(400, {}, refusal);
    }
  }
  assert.deepEqual([refused, answered], [8, 8]);
  assert.equal((await Promise.all(running)).filter((result) => result.answered).length, 8);
  // If there is nothing to leave out, the refusal is the answer.
  const plain = run({ withoutReasoning: () => undefined });
  (await bound.next()).answer(400, {}, refusal);
  assert.equal(refusalIn(await plain).cause, "upstream_rejected");
  // What was not taken from the budget has not been returned to it.
  await assertShare(dispatcher, bad, good);
});

test("a request that is refused again without its reasoning is not repeated a third time", async (t) => {
  const bound = await heldServer(t);
  const { dispatcher } = rig(t, [upstream("bound", bound.base)]);
  const withoutReasoning = () => ({ body: Buffer.from('{"less":true}'), token: { chunks: [], model: "less" } });
  const running = dispatcher.run(ask([route("bound")], { stream: false, withoutReasoning }));
  const refusal = '{"error":{"message":"Invalid `signature` in `thinking` block"}}';
  for (let at = 0; at < 2; at++) (await bound.next()).answer(400, {}, refusal);
  void bound.next().then((third) => third.answer());
  const result = await running;
  assert.equal(refusalIn(result).cause, "upstream_rejected");
  assert.equal(result.attempts.length, 2);
});

type HeldServer = Awaited<ReturnType<typeof heldServer>>;

/** Of eight requests that fail in parallel at `bad`, three are retried at `good`. */
async function assertShare(dispatcher: Rig["dispatcher"], bad: HeldServer, good: HeldServer): Promise<void> {
  const routes = [route("bad"), route("good", { priority: 1 })];
  const running = Array.from({ length: 8 }, () => dispatcher.run(ask(routes, { stream: false })));
  const held = await Promise.all(running.map(() => bad.next()));
  for (const one of held) one.answer(500);
  // Eight in flight leave room for three retries, which are still running.
  const again = await Promise.all([good.next(), good.next(), good.next()]);
  const refused = (await Promise.race([Promise.all(running), refusedOf(running, 5)])) as number;
  assert.equal(refused, 5);
  for (const one of again) one.answer();
  const results = await Promise.all(running);
  assert.equal(results.filter(({ answered }) => answered).length, 3);
}

/** Resolves with the count once this many have been refused. */
function refusedOf(running: readonly Promise<{ answered: boolean }>[], count: number): Promise<number> {
  return new Promise((resolve) => {
    let refused = 0;
    for (const one of running) {
      void one.then(({ answered }) => {
        if (!answered && ++refused === count) resolve(refused);
      });
    }
  });
}
