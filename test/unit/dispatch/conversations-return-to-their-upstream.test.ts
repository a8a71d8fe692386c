/** docs/translation-rules.md rule 8 (prompt caches, account_bound_thinking): affinity never prevents failover. */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { drawOf, orderRoutes } from "../../../src/dispatch/choose.ts";
import { defaultCapabilities } from "../../../src/values/catalog.ts";
import {
  ask,
  assertAnswered,
  FakeClock,
  HEALTH,
  heldServer,
  httpServer,
  jsonReply,
  replying,
  rig,
  route,
  upstream,
} from "./rig.ts";

const ONE_JSON = { stream: false, deadlineMs: 1_000_000 } as const;

/** The upstream of `a` and `b` that a new conversation goes to. */
function homeOf(conversation: string): string | undefined {
  return orderRoutes([route("a"), route("b")], (one) => drawOf(conversation, one))[0]?.upstream;
}

/** A server whose status can be changed. */
async function changeable(t: TestContext): Promise<{ base: string; status: number }> {
  const made = { base: "", status: 200 };
  made.base = await httpServer(t, (_request, response) => {
    response.writeHead(made.status, { "content-type": "application/json" }).end("{}");
  });
  return made;
}

test("over many conversations the weights hold, and each conversation draws the same at every replica", () => {
  const routes = [route("light", { weight: 1 }), route("heavy", { weight: 3 }), route("last", { priority: 1 })];
  let heavy = 0;
  for (let at = 0; at < 4_000; at++) {
    const order = orderRoutes(routes, (one) => drawOf(`conversation-${at}`, one));
    assert.equal(order.at(-1)?.upstream, "last");
    assert.deepEqual(
      order,
      orderRoutes(routes, (one) => drawOf(`conversation-${at}`, one)),
    );
    if (order[0]?.upstream === "heavy") heavy += 1;
  }
  assert.ok(Math.abs(heavy / 4_000 - 0.75) < 0.03, `${heavy}`);
});

test("every turn goes to the same upstream, independent of the random draw", async (t) => {
  let chance = 0;
  const upstreams = [upstream("a", await replying(t, jsonReply())), upstream("b", await replying(t, jsonReply()))];
  const { dispatcher } = rig(t, upstreams, new FakeClock(), () => (chance = (chance + 0.37) % 1));
  const seen = new Map<string, Set<string>>();
  for (let turn = 0; turn < 5; turn++) {
    for (const conversation of Array.from({ length: 12 }, (_, at) => `conversation ${at}`)) {
      const result = await dispatcher.run(ask([route("a"), route("b")], { ...ONE_JSON, conversation }));
      assertAnswered(result);
      seen.set(conversation, (seen.get(conversation) ?? new Set()).add(result.route.upstream));
    }
  }
  for (const [conversation, places] of seen) assert.equal(places.size, 1, conversation);
  assert.equal(
    new Set([...seen.values()].flatMap((places) => [...places])).size,
    2,
    "the conversations use both upstreams",
  );
});

test("an upstream that the request itself indicates takes precedence over the remembered one", async (t) => {
  const upstreams = [upstream("a", await replying(t, jsonReply())), upstream("b", await replying(t, jsonReply()))];
  const { dispatcher } = rig(t, upstreams, new FakeClock());
  const conversation = "a conversation";
  const other = homeOf(conversation) === "a" ? "b" : "a";
  for (const prefers of [undefined, other, other]) {
    const result = await dispatcher.run(ask([route("a"), route("b")], { ...ONE_JSON, conversation, prefers }));
    assertAnswered(result);
    assert.equal(result.route.upstream, prefers ?? homeOf(conversation));
  }
  const back = homeOf(conversation);
  const result = await dispatcher.run(ask([route("a"), route("b")], { ...ONE_JSON, conversation, prefers: back }));
  assertAnswered(result);
  assert.equal(result.route.upstream, back);
});

test("a failure moves the conversation, which then stays at the upstream that answered it", async (t) => {
  const a = await changeable(t);
  const b = await changeable(t);
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("a", a.base), upstream("b", b.base)], clock);
  const turn = async () => {
    const result = await dispatcher.run(ask([route("a"), route("b")], { ...ONE_JSON, conversation: "one" }));
    assertAnswered(result);
    return result;
  };
  const first = (await turn()).route.upstream;
  const [home, other] = first === "a" ? [a, b] : [b, a];
  home.status = 429;
  const moved = await turn();
  assert.equal(moved.attempts.length, 2, "affinity does not prevent failover, even on 429");
  assert.notEqual(moved.route.upstream, first);
  home.status = 200;
  clock.advance(HEALTH.coolDownMs);
  const after = await turn();
  assert.equal(after.route.upstream, moved.route.upstream, "the prompt cache is now there");
  assert.equal(after.attempts.length, 1);
  other.status = 500;
  assert.deepEqual(
    (await turn()).attempts.map(({ upstream: name }) => name),
    [moved.route.upstream, first],
  );
});

test("affinity does not insist on an ejected or full upstream", async (t) => {
  const a = await heldServer(t);
  const b = await heldServer(t);
  const clock = new FakeClock();
  const one = { maxConcurrency: 1, health: { ...HEALTH, failures: 1 } };
  const { dispatcher } = rig(t, [upstream("a", a.base, one), upstream("b", b.base, one)], clock);
  const turn = () => dispatcher.run(ask([route("a"), route("b")], { ...ONE_JSON, conversation: "one" }));
  const [home, other] = homeOf("one") === "a" ? [a, b] : [b, a];
  const first = turn();
  const held = await home.next();
  const second = turn();
  const elsewhere = await other.next();
  held.answer();
  await first;
  elsewhere.answer();
  const upstreams = [await first, await second].map((result) => result.answered && result.route.upstream);
  assert.deepEqual(upstreams, homeOf("one") === "a" ? ["a", "b"] : ["b", "a"]);
  // The second turn was answered by the other upstream, which fails now: the conversation returns to the healthy one.
  const third = turn();
  (await other.next()).answer(500);
  (await home.next()).answer();
  assertAnswered(await third);
  clock.advance(1);
  const fourth = turn();
  (await home.next()).answer();
  assertAnswered(await fourth);
});

test("affinity applies within a priority, but across priorities if only one account can read the thinking", async (t) => {
  const main = await changeable(t);
  const spare = await changeable(t);
  for (const [accountBoundThinking, expected] of [
    [false, "main"],
    [true, "spare"],
  ] as const) {
    const clock = new FakeClock();
    const { dispatcher } = rig(t, [upstream("main", main.base), upstream("spare", spare.base)], clock);
    const capabilities = { ...defaultCapabilities("chat"), accountBoundThinking };
    const routes = [route("main", { capabilities }), route("spare", { capabilities, priority: 1 })];
    const turn = async () => {
      const result = await dispatcher.run(ask(routes, { ...ONE_JSON, conversation: "one" }));
      assertAnswered(result);
      return result.route.upstream;
    };
    main.status = 503;
    assert.equal(await turn(), "spare");
    main.status = 200;
    assert.equal(await turn(), expected);
    spare.status = 503;
    assert.equal(await turn(), "main", "affinity does not prevent failover");
    spare.status = 200;
  }
});

/** Upstreams whose turns take as long as the test says. */
async function paced<Name extends string>(t: TestContext, delaysMs: Record<Name, number>) {
  const clock = new FakeClock();
  const serving = (name: Name) =>
    httpServer(t, (_request, response) => {
      clock.advance(delaysMs[name]);
      response.writeHead(200, { "content-type": "text/event-stream" }).end("data: a\n\n");
    });
  const patient = { timeouts: { connectMs: 1e6, firstByteMs: 1e6, wholeMs: 1e6, idleMs: 1e6, totalMs: 1e6 } };
  const names = Object.keys(delaysMs) as Name[];
  const upstreams = await Promise.all(names.map(async (name) => upstream(name, await serving(name), patient)));
  const { dispatcher } = rig(t, upstreams, clock);
  const turn = async (conversation: string, routes = names.map((name) => route(name))) => {
    const result = await dispatcher.run(ask(routes, { conversation, deadlineMs: 10_000_000 }));
    assertAnswered(result);
    result.body?.abort();
    return result.route.upstream as Name;
  };
  return { delaysMs, turn };
}

test("a slow upstream loses its conversations while another is fast", async (t) => {
  const { delaysMs, turn } = await paced(t, { a: 0, b: 0 });
  // Both have been measured.
  for (let at = 0; at < 20; at++) await turn(`other-${at}`);
  const home = await turn("one");
  delaysMs[home] = 2_000;
  assert.equal(await turn("one"), home, "a slightly slower upstream is kept");
  delaysMs[home] = 60_000;
  assert.equal(await turn("one"), home);
  assert.notEqual(await turn("one"), home);
});

test("a single slow answer moves no conversation", async (t) => {
  const { delaysMs, turn } = await paced(t, { a: 0, b: 0 });
  for (let at = 0; at < 20; at++) await turn(`other-${at}`);
  const home = await turn("one");
  delaysMs[home] = 20_000;
  assert.equal(await turn("one"), home);
  delaysMs[home] = 0;
  assert.equal(await turn("one"), home, "the mean is below what counts as slow");
});

test("a slow upstream keeps its conversations while the others are not much faster", async (t) => {
  const { delaysMs, turn } = await paced(t, { a: 20_000, b: 20_000 });
  for (let at = 0; at < 20; at++) await turn(`other-${at}`);
  const home = await turn("one");
  delaysMs[home] = 25_000;
  for (let at = 0; at < 4; at++) assert.equal(await turn("one"), home);
});

test("a fast upstream of another priority does not make an upstream count as slow", async (t) => {
  const { turn } = await paced(t, { a: 20_000, b: 20_000, spare: 10 });
  const routes = [route("a"), route("b"), route("spare", { priority: 1 })];
  for (const one of routes) await turn("other", [one]);
  const home = await turn("one", routes);
  for (let at = 0; at < 4; at++) assert.equal(await turn("one", routes), home);
});

test("a conversation does not go to the upstream that answered it last while that is slow", async (t) => {
  const { delaysMs, turn } = await paced(t, { a: 0, b: 0 });
  for (let at = 0; at < 20; at++) await turn(`other-${at}`);
  const home = await turn("one");
  const other = home === "a" ? "b" : "a";
  delaysMs[other] = 60_000;
  assert.equal(await turn("one", [route(other)]), other, "the only one at that time");
  assert.equal(await turn("one"), home);
});

test("a slow upstream keeps a conversation whose thinking only its account can read", async (t) => {
  const { delaysMs, turn } = await paced(t, { a: 0, b: 0 });
  for (let at = 0; at < 20; at++) await turn(`other-${at}`);
  const capabilities = { ...defaultCapabilities("chat"), accountBoundThinking: true };
  const routes = [route("a", { capabilities }), route("b", { capabilities })];
  const home = await turn("one", routes);
  delaysMs[home] = 60_000;
  for (let at = 0; at < 3; at++) assert.equal(await turn("one", routes), home);
});
