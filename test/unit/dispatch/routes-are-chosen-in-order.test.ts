/** Which route is tried first and which next, and that concurrency is bounded (ARCHITECTURE.md promise 13). */
import assert from "node:assert/strict";
import test from "node:test";
import { orderRoutes } from "../../../src/dispatch/choose.ts";
import { RetryBudget } from "../../../src/dispatch/dispatcher.ts";
import { UpstreamPool } from "../../../src/dispatch/upstream/pool.ts";
import { answerOf, refusal } from "../../../src/values/errors.ts";
import { Secret } from "../../../src/values/secret.ts";
import {
  ask,
  assertAnswered,
  byName,
  chunked,
  closedPort,
  FakeClock,
  httpServer,
  jsonReply,
  rawServer,
  readRest,
  refusalIn,
  replying,
  rig,
  route,
  SSE_HEAD,
  settled,
  upstream,
} from "./rig.ts";

/** Pseudo-random numbers in [0, 1), the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("a lower priority number always comes first; weights share within one priority", () => {
  const routes = [
    route("last", { priority: 2, weight: 1_000 }),
    route("light", { weight: 1 }),
    route("heavy", { weight: 3 }),
    route("middle", { priority: 1, weight: 0.001 }),
  ];
  const random = seeded(7);
  let heavyFirst = 0;
  for (let at = 0; at < 10_000; at++) {
    const names = orderRoutes(routes, random).map(({ upstream: name }) => name);
    assert.deepEqual(names.slice(2), ["middle", "last"]);
    assert.deepEqual(names.slice(0, 2).toSorted(), ["heavy", "light"]);
    if (names[0] === "heavy") heavyFirst += 1;
  }
  assert.ok(Math.abs(heavyFirst / 10_000 - 0.75) < 0.02, `${heavyFirst}`);
});

test("the retry budget is a fifth of the running requests, and at least three", () => {
  const budget = new RetryBudget();
  assert.deepEqual(
    [0, 1, 2, 3].map(() => budget.take(0)),
    [true, true, true, false],
  );
  assert.equal(budget.take(20), true);
  assert.equal(budget.take(20), false);
  budget.release();
  assert.equal(budget.take(20), true);
});

test("a full upstream is passed over; when all are full the answer is 429 with retry-after 1", async (t) => {
  const base = await replying(t, `${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: a\n\n")}`);
  const { dispatcher } = rig(t, [
    upstream("east", base, { maxConcurrency: 1 }),
    upstream("west", base, { maxConcurrency: 1 }),
  ]);
  const routes = [route("east"), route("west", { priority: 1 })];
  const first = await dispatcher.run(ask(routes));
  const second = await dispatcher.run(ask(routes));
  const third = await dispatcher.run(ask(routes));
  assertAnswered(first);
  assertAnswered(second);
  assert.deepEqual([first.route.upstream, second.route.upstream], ["east", "west"]);
  assert.deepEqual(
    [...dispatcher.inFlight()],
    [
      ["east", 1],
      ["west", 1],
    ],
  );
  assert.equal(refusalIn(third).cause, "upstream_rate_limit");
  assert.equal(answerOf(refusalIn(third)).retryAfterS, 1);
  assert.equal(third.attempts.length, 0);
  first.body?.abort();
  const fourth = await dispatcher.run(ask(routes));
  assertAnswered(fourth);
  assert.equal(fourth.route.upstream, "east");
  fourth.body?.abort();
  second.body?.abort();
});

test("a route that cannot carry the request is passed over, and if none can, its refusal is the answer", async (t) => {
  const { dispatcher } = rig(t, [upstream("east", await replying(t, jsonReply()))]);
  const routes = [route("east", { upstreamModel: "a" }), route("east", { upstreamModel: "b", priority: 1 })];
  const refused = refusal("untranslatable", { param: "tools" });
  const encoded = ask(routes).encodeFor;
  const some = await dispatcher.run(
    ask(routes, { stream: false, encodeFor: (to) => (to.upstreamModel === "a" ? refused : encoded(to)) }),
  );
  assertAnswered(some);
  assert.equal(some.token.model, "b");
  const none = await dispatcher.run(ask(routes, { stream: false, encodeFor: () => refused }));
  assert.equal(refusalIn(none), refused);
  assert.equal(none.attempts.length, 0);
});

test("there is no third attempt, however many routes there are", async (t) => {
  const dead = await closedPort(t);
  const upstreams = ["a", "b", "c"].map((name) => upstream(name, dead));
  const { dispatcher } = rig(t, upstreams);
  const result = await dispatcher.run(ask(upstreams.map(({ name }, priority) => route(name, { priority }))));
  assert.deepEqual(
    result.attempts.map(({ upstream: name }) => name),
    ["a", "b"],
  );
});

test("a reload sends new requests to the new address while a running stream finishes at the old one", async (t) => {
  const finish = Promise.withResolvers<void>();
  const before = await rawServer(t, ({ socket }) => {
    socket.write(`${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: old\n\n")}`);
    void finish.promise.then(() => socket.write(`${chunked("data: end\n\n")}0\r\n\r\n`));
  });
  const after = await replying(t, `${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: new\n\n")}0\r\n\r\n`);
  const { dispatcher } = rig(t, [upstream("east", before)]);
  const old = await dispatcher.run(ask([route("east")]));
  assertAnswered(old);
  dispatcher.replace(byName([upstream("east", after)]));
  const fresh = await dispatcher.run(ask([route("east")]));
  assertAnswered(fresh);
  assert.equal((await readRest(fresh)).text, "data: new\n\n");
  assert.deepEqual([...dispatcher.inFlight()], [["east", 1]]);
  finish.resolve();
  assert.deepEqual(await readRest(old), { text: "data: old\n\ndata: end\n\n", fault: undefined });
  assert.deepEqual([...dispatcher.inFlight()], [["east", 0]]);
});

const UNUSABLE = {
  tls: { ca: undefined, identity: { cert: "no PEM", key: new Secret("no PEM") }, serverName: undefined },
};

test("a reload without changes keeps the connections, and a failed one changes nothing", async (t) => {
  const connections = new Set<number>();
  const base = await rawServer(t, ({ socket, connection }) => {
    connections.add(connection);
    socket.write(jsonReply());
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const once = async () => {
    assertAnswered(await dispatcher.run(ask([route("east")], { stream: false })));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  };
  await once();
  dispatcher.replace(byName([upstream("east", base)]));
  await once();
  assert.throws(() => dispatcher.replace(byName([upstream("east", base, UNUSABLE)])));
  await once();
  assert.equal(connections.size, 1);
});

test("after a reload with another credential or header value, requests use it", async (t) => {
  const seen: string[] = [];
  const base = await httpServer(t, ({ headers }, response) => {
    seen.push(`${headers.authorization} ${headers["x-team"]}`);
    response.setHeader("content-type", "application/json").end("{}");
  });
  const settings = (key: string, team: string) =>
    byName([upstream("east", base, { apiKey: new Secret(key), headers: new Map([["x-team", new Secret(team)]]) })]);
  const { dispatcher } = rig(t, [...settings("key-1", "a").values()]);
  for (const next of [undefined, settings("key-2", "a"), settings("key-2", "b")]) {
    if (next) dispatcher.replace(next);
    assertAnswered(await dispatcher.run(ask([route("east")], { stream: false })));
  }
  assert.deepEqual(seen, ["Bearer key-1 a", "Bearer key-2 a", "Bearer key-2 b"]);
});

test("what a reload has replaced is dropped once no request runs there", async () => {
  const east = upstream("east", "http://127.0.0.1:9/v1");
  const clock = new FakeClock();
  const pool = new UpstreamPool(byName([east]), { clock, random: () => 0.5, onEjected() {}, onReturned() {} });
  const before = pool.get("east")?.slots;
  pool.replace(new Map());
  await settled();
  pool.replace(byName([east]));
  assert.ok(before);
  assert.notEqual(pool.get("east")?.slots, before);
  await pool.close();
});

test("a route to an upstream that is no longer configured is passed over", async (t) => {
  const { dispatcher } = rig(t, [upstream("east", await replying(t, jsonReply()))]);
  const result = await dispatcher.run(ask([route("gone"), route("east", { priority: 1 })], { stream: false }));
  assertAnswered(result);
  const none = await dispatcher.run(ask([route("gone")], { stream: false }));
  assert.equal(refusalIn(none).cause, "upstream_unavailable");
});
