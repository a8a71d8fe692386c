/** `max_concurrency` and ARCHITECTURE.md promise 13: a fair, bounded wait before any 429. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";
import { FairQueue } from "../../../src/dispatch/upstream/fair-queue.ts";
import { Slots } from "../../../src/dispatch/upstream/slots.ts";
import { answerOf } from "../../../src/values/errors.ts";
import { ask, assertAnswered, FakeClock, heldServer, refusalIn, rig, route, settled, upstream } from "./rig.ts";

interface One {
  readonly owner: { readonly account: string; readonly key: string };
  readonly name: string;
}

/** `a1/2` is the second request of key 1 of account a. */
function one(name: string): One {
  const [owner = ""] = name.split("/");
  return { owner: { account: owner.slice(0, 1), key: owner }, name };
}

function emptied(line: FairQueue<One>): string[] {
  const names: string[] = [];
  for (let next = line.next(); next; next = line.next()) names.push(next.name);
  return names;
}

test("accounts take turns, within an account its keys, and within a key its requests in order", () => {
  const line = new FairQueue<One>(100);
  for (const name of ["a1/1", "a1/2", "a1/3", "a2/1", "b1/1", "b1/2", "c1/1"]) line.enter(one(name));
  assert.equal(line.length, 7);
  assert.deepEqual(emptied(line), ["a1/1", "b1/1", "c1/1", "a2/1", "b1/2", "a1/2", "a1/3"]);
  assert.equal(line.length, 0);
});

test("a full queue makes room only for an account that has at least two fewer requests in it", () => {
  const line = new FairQueue<One>(4);
  const names = (put: One | undefined) => put?.name;
  const last = one("a1/4");
  for (const name of ["a1/1", "a1/2", "a1/3"]) line.enter(one(name));
  line.enter(last);
  assert.equal(names(line.enter(one("b1/1"))), "a1/4", "the newest request of the account with the most is displaced");
  assert.equal(names(line.enter(one("a1/5"))), "a1/5", "a request does not displace one of its own account");
  assert.equal(names(line.enter(one("a2/1"))), "a1/3", "a key of the same account counts too");
  assert.equal(names(line.enter(one("b1/2"))), "a1/2", "b has two requests less than a");
  assert.equal(names(line.enter(one("b1/3"))), "b1/3", "b has as many requests as a");
  line.leave(last);
  assert.deepEqual(emptied(line), ["a1/1", "b1/1", "a2/1", "b1/2"]);
});

test("within an account, too, a key makes room only for one with at least two fewer requests", () => {
  const line = new FairQueue<One>(3);
  for (const name of ["a1/1", "a1/2", "a1/3"]) line.enter(one(name));
  assert.equal(line.enter(one("a2/1"))?.name, "a1/3");
  assert.equal(line.enter(one("a2/2"))?.name, "a2/2");
  assert.deepEqual(emptied(line), ["a1/1", "a2/1", "a1/2"]);
});

test("the only request of a key or an account may leave, and the others keep their turns", () => {
  const line = new FairQueue<One>(100);
  const [ofKey, ofAccount] = [one("a1/1"), one("b1/1")];
  for (const entering of [ofKey, ofAccount, one("a2/1"), one("c1/1")]) line.enter(entering);
  line.leave(ofKey);
  line.leave(ofAccount);
  assert.equal(line.length, 2);
  assert.deepEqual(emptied(line), ["a2/1", "c1/1"]);
  line.leave(ofKey);
  assert.equal(line.length, 0, "a request that is not here changes nothing");
});

test("a queue of size 0 accepts no request", () => {
  const line = new FairQueue<One>(0);
  const first = one("a1/1");
  assert.equal(line.enter(first), first);
  assert.equal(line.next(), undefined);
});

const QUEUE = { maxConcurrency: 1, queue: { max: 3, waitMs: 5_000 } };
const ONE_JSON = { stream: false, deadlineMs: 100_000, owner: { account: "a", key: "a1" } } as const;

function asked(name: string, more = {}) {
  return ask([route("east", { upstreamModel: name })], { ...ONE_JSON, owner: one(name).owner, ...more });
}

test("waiting requests are served in turn as slots become free, and no new request overtakes them", async (t) => {
  const east = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher, waits } = rig(t, [upstream("east", east.base, QUEUE)], clock);
  const running = ["a1/1", "a1/2", "a1/3", "b1/1"].map((name) => dispatcher.run(asked(name)));
  const order: string[] = [];
  const first = await east.next();
  assert.equal(dispatcher.report()[0]?.queued, 3);
  clock.advance(1_000);
  first.answer();
  // Sent in the tick in which the slot becomes free.
  await running[0];
  const late = dispatcher.run(asked("c1/1"));
  for (let at = 0; at < 4; at++) {
    const held = await east.next();
    order.push((held.json as { model: string }).model);
    held.answer();
  }
  for (const result of await Promise.all([...running, late])) assertAnswered(result);
  assert.deepEqual(order, ["a1/2", "b1/1", "a1/3", "c1/1"]);
  assert.deepEqual(waits[0], ["east", 1_000]);
  assert.equal(waits.length, 4);
  assert.equal(dispatcher.report()[0]?.queued, 0);
  assert.equal(dispatcher.inFlight().get("east"), 0);
});

test("a request displaced from its only queue is refused at once", async (t) => {
  const east = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("east", east.base, { ...QUEUE, queue: { max: 2, waitMs: 5_000 } })], clock);
  const first = dispatcher.run(asked("a1/1"));
  const held = await east.next();
  const [second, displaced, other] = ["a1/2", "a1/3", "b1/1"].map((name) => dispatcher.run(asked(name)));
  assert.equal(refusalIn((await displaced) as Awaited<typeof first>).cause, "upstream_rate_limit");
  held.answer();
  for (let at = 0; at < 2; at++) (await east.next()).answer();
  for (const result of await Promise.all([first, second, other])) assertAnswered(result as Awaited<typeof first>);
});

test("a request displaced from one of two queues keeps waiting in the other", async (t) => {
  const [east, west] = [await heldServer(t), await heldServer(t)];
  const more = { ...QUEUE, queue: { max: 2, waitMs: 5_000 } };
  const { dispatcher } = rig(
    t,
    [upstream("east", east.base, more), upstream("west", west.base, more)],
    new FakeClock(),
  );
  const both = () => dispatcher.run(ask([route("east"), route("west")], ONE_JSON));
  const running = [both(), both()];
  const held = [await east.next(), await west.next()];
  running.push(both(), both(), dispatcher.run(asked("b1/1")));
  await settled();
  assert.deepEqual(
    dispatcher.report().map(({ queued }) => queued),
    [2, 2],
  );
  held[0]?.answer();
  held[1]?.answer();
  for (let at = 0; at < 2; at++) (await east.next()).answer();
  (await west.next()).answer();
  for (const result of await Promise.all(running)) assertAnswered(result);
});

test("when the wait ends or the queue is full, the answer is 429 with a retry-after from the duration of requests", async (t) => {
  const east = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("east", east.base, { ...QUEUE, queue: { max: 1, waitMs: 5_000 } })], clock);
  const first = dispatcher.run(asked("a1/1"));
  const held = await east.next();
  const waiting = dispatcher.run(asked("a1/2"));
  clock.advance(4_000);
  const tooMany = refusalIn(await dispatcher.run(asked("b1/1")));
  assert.equal(tooMany.cause, "upstream_rate_limit");
  assert.equal(answerOf(tooMany).status, 429);
  assert.equal(answerOf(tooMany).retryAfterS, 8, "two requests of 4 seconds each, one at a time");
  clock.advance(1_000);
  const refused = refusalIn(await waiting);
  assert.equal(refused.cause, "upstream_rate_limit");
  assert.equal(answerOf(refused).retryAfterS, 5, "no other request is in the queue");
  assert.equal(dispatcher.report()[0]?.queued, 0);
  held.answer();
  assertAnswered(await first);
});

test("the duration of requests is that of the running ones if they take longer than those before", () => {
  const clock = new FakeClock();
  const slots = new Slots(1, { max: 0, waitMs: 0 }, clock);
  for (let at = 0; at < 5; at++) {
    const slot = slots.take();
    clock.advance(1_000);
    slot.release();
  }
  assert.equal(slots.retryAfterS(), 1);
  const slot = slots.take();
  clock.advance(9_000);
  assert.equal(slots.retryAfterS(), 9);
  slot.release();
});

test("of several slots, the next one is expected to be free sooner", () => {
  const clock = new FakeClock();
  const slots = new Slots(4, { max: 0, waitMs: 0 }, clock);
  for (let at = 0; at < 4; at++) slots.take();
  clock.advance(8_000);
  assert.equal(slots.retryAfterS(), 2);
});

test("a wait never outlasts the request's own deadline", async (t) => {
  const east = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("east", east.base, QUEUE)], clock);
  void dispatcher.run(asked("a1/1"));
  const held = await east.next();
  const waiting = dispatcher.run(asked("a1/2", { deadlineMs: clock.monotonicMs() + 300 }));
  clock.advance(300);
  assert.equal(refusalIn(await waiting).cause, "upstream_rate_limit");
  held.answer();
});

test("a request in two queues waits as long as the longer wait allows", async (t) => {
  const [east, west] = [await heldServer(t), await heldServer(t)];
  const clock = new FakeClock();
  const upstreams = [
    upstream("east", east.base, { ...QUEUE, queue: { max: 3, waitMs: 1_000 } }),
    upstream("west", west.base, QUEUE),
  ];
  const { dispatcher } = rig(t, upstreams, clock);
  const both = ask([route("east"), route("west")], ONE_JSON);
  const running = [dispatcher.run(both), dispatcher.run(both)];
  const held = [await east.next(), await west.next()];
  const third = dispatcher.run(both);
  clock.advance(3_000);
  held[1]?.answer();
  (await west.next()).answer();
  assertAnswered(await third);
  held[0]?.answer();
  for (const result of await Promise.all(running)) assertAnswered(result);
});

test("a client that disconnects while queued leaves nothing in the queue", async (t) => {
  const east = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("east", east.base, QUEUE)], clock);
  const first = dispatcher.run(asked("a1/1"));
  const held = await east.next();
  const client = new AbortController();
  const timers = clock.pending;
  const waiting = dispatcher.run(asked("a1/2", { signal: client.signal }));
  client.abort();
  const result = await waiting;
  assert.ok(!result.answered && result.clientGone);
  assert.deepEqual(result.attempts, []);
  assert.equal(dispatcher.report()[0]?.queued, 0);
  assert.equal(clock.pending, timers);
  held.answer();
  assertAnswered(await first);
  assert.equal(dispatcher.inFlight().get("east"), 0);
});

test("the queue stops listening to the signal of a client that got its slot", async (t) => {
  const east = await heldServer(t);
  const { dispatcher } = rig(t, [upstream("east", east.base, QUEUE)], new FakeClock());
  const first = dispatcher.run(asked("a1/1"));
  const held = await east.next();
  const { signal } = new AbortController();
  const waiting = dispatcher.run(asked("a1/2", { signal }));
  held.answer();
  (await east.next()).answer();
  for (const result of [await first, await waiting]) assertAnswered(result);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a client that disconnects as its slot becomes free returns the slot", async (t) => {
  const east = await heldServer(t);
  const { dispatcher } = rig(t, [upstream("east", east.base, QUEUE)], new FakeClock());
  const running = new AbortController();
  const waiting = new AbortController();
  void dispatcher.run(asked("a1/1", { signal: running.signal }));
  await east.next();
  const second = dispatcher.run(asked("a1/2", { signal: waiting.signal }));
  running.abort();
  waiting.abort();
  const result = await second;
  assert.ok(!result.answered && result.clientGone);
  assert.equal(dispatcher.inFlight().get("east"), 0);
});

test("another route with a free slot is preferred to waiting, and a queued request takes the first slot of any route", async (t) => {
  const east = await heldServer(t);
  const west = await heldServer(t);
  const upstreams = [upstream("east", east.base, QUEUE), upstream("west", west.base, QUEUE)];
  const { dispatcher, waits } = rig(t, upstreams, new FakeClock());
  const both = ask([route("east"), route("west")], ONE_JSON);
  const first = dispatcher.run(both);
  const second = dispatcher.run(both);
  const heldEast = await east.next();
  const heldWest = await west.next();
  assert.equal(waits.length, 0);
  const third = dispatcher.run(both);
  assert.deepEqual(
    dispatcher.report().map(({ queued }) => queued),
    [1, 1],
  );
  heldWest.answer();
  const heldThird = await west.next();
  assert.deepEqual(
    dispatcher.report().map(({ queued }) => queued),
    [0, 0],
  );
  heldEast.answer();
  heldThird.answer();
  for (const result of await Promise.all([first, second, third])) assertAnswered(result);
  assert.deepEqual(
    waits.map(([name]) => name),
    ["west"],
  );
});

test("a reload moves queued requests to the new settings", async (t) => {
  const east = await heldServer(t);
  const { dispatcher } = rig(t, [upstream("east", east.base, QUEUE)], new FakeClock());
  const first = dispatcher.run(asked("a1/1"));
  const held = await east.next();
  const waiting = dispatcher.run(asked("a1/2"));
  dispatcher.replace(new Map([["east", upstream("east", east.base, { ...QUEUE, maxConcurrency: 2 })]]));
  (await east.next()).answer();
  assertAnswered(await waiting);
  held.answer();
  assertAnswered(await first);
  await settled();
  assert.deepEqual([...dispatcher.inFlight().values()], [0]);
});

test("a reload does not restart the wait of queued requests, and its own limit applies to them", async (t) => {
  const east = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("east", east.base, QUEUE)], clock);
  const first = dispatcher.run(asked("a1/1"));
  const held = await east.next();
  const waiting = dispatcher.run(asked("a1/2"));
  clock.advance(3_000);
  dispatcher.replace(new Map([["east", upstream("east", east.base, { ...QUEUE, queue: { max: 2, waitMs: 4_000 } })]]));
  await settled();
  assert.equal(dispatcher.report()[0]?.queued, 1);
  clock.advance(1_000);
  await settled();
  assert.equal(dispatcher.report()[0]?.queued, 0);
  assert.equal(refusalIn(await waiting).cause, "upstream_rate_limit");
  held.answer();
  assertAnswered(await first);
});

test("requests running at an upstream count after a reload, also if the upstream was removed in between", async (t) => {
  const east = await heldServer(t);
  const other = await heldServer(t);
  const { dispatcher } = rig(t, [upstream("east", east.base, { ...QUEUE, maxConcurrency: 2 })], new FakeClock());
  const running = [dispatcher.run(asked("a1/1")), dispatcher.run(asked("a1/2"))];
  const held = [await east.next(), await east.next()];
  const inFlight = () => dispatcher.report().map((one) => [one.inFlight, one.queued, one.maxConcurrency]);
  const changed = upstream("east", east.base, { ...QUEUE, queue: { max: 1, waitMs: 5_000 } });
  dispatcher.replace(new Map([["east", changed]]));
  running.push(dispatcher.run(asked("b1/1")));
  assert.deepEqual(inFlight(), [[2, 1, 1]]);
  assert.equal(refusalIn(await dispatcher.run(asked("c1/1"))).cause, "upstream_rate_limit", "the new queue is shorter");
  held[0]?.answer();
  await running[0];
  assert.deepEqual(inFlight(), [[1, 1, 1]], "one request runs, as the new limit allows");
  dispatcher.replace(new Map());
  assert.equal(refusalIn((await running[2]) as Awaited<(typeof running)[0]>).cause, "upstream_unavailable");
  assert.deepEqual([...dispatcher.inFlight()], [["east", 1]]);
  dispatcher.replace(new Map([["east", changed]]));
  running.push(dispatcher.run(asked("b1/2")));
  assert.deepEqual(inFlight(), [[1, 1, 1]]);
  dispatcher.replace(new Map([["east", upstream("east", other.base, QUEUE)]]));
  (await other.next()).answer();
  assertAnswered((await running[3]) as Awaited<(typeof running)[0]>);
  assert.deepEqual(inFlight(), [[1, 0, 1]], "requests to the old address do not count for the new one");
  held[1]?.answer();
  assertAnswered((await running[1]) as Awaited<(typeof running)[0]>);
  await settled();
  assert.deepEqual([...dispatcher.inFlight()], [["east", 0]]);
});

test("a request without an owner, such as a token count, does not wait, and is told the shortest wait", async (t) => {
  const east = await heldServer(t);
  const west = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher, waits } = rig(t, [upstream("east", east.base, QUEUE), upstream("west", west.base, QUEUE)], clock);
  const first = dispatcher.run({ ...asked("a1/1"), routes: [route("east")] });
  const inEast = await east.next();
  clock.advance(7_000);
  const second = dispatcher.run({ ...asked("a1/2"), routes: [route("west")] });
  const inWest = await west.next();
  clock.advance(2_000);
  const routes = [route("east"), route("west")];
  const nobodys = refusalIn(await dispatcher.run(ask(routes, { stream: false, deadlineMs: 100_000 })));
  assert.equal(nobodys.cause, "upstream_rate_limit");
  assert.equal(answerOf(nobodys).retryAfterS, 2, "the requests of west have taken less time so far");
  assert.deepEqual(waits, [], "nothing is measured as a wait");
  for (const held of [inEast, inWest]) held.answer();
  assertAnswered(await first);
  assertAnswered(await second);
});
