/**
 * A client's question about what an upstream keeps costs nothing, and its answer can be large and slow. So these questions have a quarter
 * of the slots, and wait for their turns before they are sent (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import { EventEmitter, getEventListeners, once } from "node:events";
import type { ServerResponse } from "node:http";
import test, { type TestContext } from "node:test";
import { answerOf } from "../../../src/values/errors.ts";
import { type Clock, systemClock } from "../../../src/values/time.ts";
import { ask, assertAnswered, byName, FakeClock, httpServer, refusalIn, rig, route, settled, upstream } from "./rig.ts";

const SLOTS = 8;
const ASKED_AT_ONCE = 2;
const DEADLINE_MS = 30_000;
/** Less than the upstream's own time limit. */
const SHORT_MS = 5_000;

/** An upstream that answers a question when the test says so, and any other request at once. */
async function keeping(t: TestContext, clock: Clock = systemClock, maxConcurrency = SLOTS) {
  const asked: { readonly name: string; readonly response: ServerResponse }[] = [];
  const come = new EventEmitter();
  const base = await httpServer(t, (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "application/json" });
    if (request.method === "POST") response.end("{}");
    else come.emit("asked", asked.push({ name: request.url?.split("/").at(-1) ?? "", response }));
  });
  const { dispatcher } = rig(t, [upstream("up", base, { maxConcurrency })], clock);
  return {
    base,
    dispatcher,
    asked,
    hasAsked: async (times: number) => {
      while (asked.length < times) await once(come, "asked");
    },
    paid: () => dispatcher.run(ask([route("up")], { stream: false, deadlineMs: clock.monotonicMs() + DEADLINE_MS })),
    question: (name: string, signal = new AbortController().signal, leftMs = DEADLINE_MS) => {
      const owner = { account: name.slice(0, 1), key: name.slice(0, 1) };
      return dispatcher.run(
        ask([route("up")], {
          ...{
            stream: false,
            readsInTurn: "by_client",
            readsFor: owner,
            method: "GET",
            pathSuffix: `/${name}`,
            signal,
          },
          deadlineMs: clock.monotonicMs() + leftMs,
          encodeFor: () => ({ body: new Uint8Array(), token: { chunks: [], model: "" } }),
        }),
      );
    },
  };
}

test("a quarter of the slots is for questions, the rest for other requests, and accounts have fair turns", async (t) => {
  const { asked, hasAsked, paid, question } = await keeping(t);
  const questions = ["a1", "a2", "a3", "a4", "b1"].map((name) => question(name));
  await hasAsked(ASKED_AT_ONCE);
  for (let times = 0; times < SLOTS; times++) assertAnswered(await paid());
  assert.equal(asked.length, ASKED_AT_ONCE);
  for (let at = 0; at < questions.length; at++) {
    await hasAsked(at + 1);
    asked[at]?.response.end("{}");
  }
  for (const one of questions) assertAnswered(await one);
  assert.deepEqual(
    asked.slice(ASKED_AT_ONCE).map(({ name }) => name),
    ["a3", "b1", "a4"],
  );
});

test("an upstream with one slot is asked one question at a time", async (t) => {
  const { asked, hasAsked, question } = await keeping(t, systemClock, 1);
  const both = [question("a1"), question("b1")];
  await hasAsked(1);
  asked[0]?.response.end("{}");
  await hasAsked(2);
  asked[1]?.response.end("{}");
  for (const one of both) assertAnswered(await one);
});

test("a client that disconnects while its question waits loses its turn, and nothing of it stays", async (t) => {
  const { asked, hasAsked, question } = await keeping(t);
  const first = [question("a1"), question("a2")];
  await hasAsked(ASKED_AT_ONCE);
  const leaving = new AbortController();
  const gone = question("a3", leaving.signal);
  const last = question("a4");
  leaving.abort();
  // Not refused with the 429 of a question whose time is over.
  const left = await gone;
  assert.ok(!left.answered && left.clientGone && left.refusal === undefined);
  assert.equal(getEventListeners(leaving.signal, "abort").length, 0);
  for (const { response } of asked.slice()) response.end("{}");
  await hasAsked(ASKED_AT_ONCE + 1);
  asked[ASKED_AT_ONCE]?.response.end("{}");
  for (const one of [...first, last]) assertAnswered(await one);
  assert.deepEqual(
    asked.map(({ name }) => name),
    ["a1", "a2", "a4"],
  );
});

test("a question whose client has disconnected before does not wait for a turn", async (t) => {
  const { hasAsked, asked, question } = await keeping(t);
  const first = [question("a1"), question("a2")];
  await hasAsked(ASKED_AT_ONCE);
  const left = question("a3", AbortSignal.abort()).then(({ answered }) => answered);
  assert.equal(await Promise.race([left, settled().then(() => "waits")]), false);
  for (const { response } of asked) response.end("{}");
  for (const one of first) assertAnswered(await one);
});

test("the wait for a turn takes no time from the answer", async (t) => {
  const clock = new FakeClock();
  const { asked, hasAsked, question } = await keeping(t, clock);
  const first = [question("a1"), question("a2")];
  await hasAsked(ASKED_AT_ONCE);
  const waiting = question("b1", undefined, SHORT_MS);
  await settled();
  clock.advance(SHORT_MS - 1);
  for (const { response } of asked.slice()) response.end("{}");
  for (const one of first) assertAnswered(await one);
  await hasAsked(ASKED_AT_ONCE + 1);
  clock.advance(SHORT_MS - 1);
  asked[ASKED_AT_ONCE]?.response.end("{}");
  assertAnswered(await waiting);
});

test("a question whose turn has not come when its time is over is refused with 429", async (t) => {
  const clock = new FakeClock();
  const { asked, hasAsked, question } = await keeping(t, clock);
  const first = [question("a1"), question("a2")];
  await hasAsked(ASKED_AT_ONCE);
  const late = question("b1");
  await settled();
  clock.advance(DEADLINE_MS);
  const { status, cause } = answerOf(refusalIn(await late));
  assert.deepEqual([status, cause], [429, "upstream_rate_limit"]);
  for (const one of first) assert.equal((await one).answered, false);
  assert.equal(asked.length, ASKED_AT_ONCE);
});

test("a reload does not give a question that waits for its turn more time", async (t) => {
  const clock = new FakeClock();
  const { base, dispatcher, hasAsked, question } = await keeping(t, clock);
  const first = [question("a1"), question("a2")];
  await hasAsked(ASKED_AT_ONCE);
  const late = question("b1", undefined, SHORT_MS);
  await settled();
  clock.advance(SHORT_MS - 1);
  dispatcher.replace(byName([upstream("up", base, { maxConcurrency: SLOTS, queue: { max: 7, waitMs: 1 } })]));
  await settled();
  clock.advance(1);
  const refused = late.then((result) => answerOf(refusalIn(result)).status);
  assert.equal(await Promise.race([refused, settled().then(() => "waits")]), 429);
  clock.advance(DEADLINE_MS);
  for (const one of first) assert.equal((await one).answered, false);
});

test("after a reload the questions at a replaced upstream count among those of its successor", async (t) => {
  const { asked, base, dispatcher, hasAsked, question } = await keeping(t);
  const questions = ["a1", "a2", "a3"].map((name) => question(name));
  await hasAsked(ASKED_AT_ONCE);
  const changed = upstream("up", base, { maxConcurrency: SLOTS * 2 });
  dispatcher.replace(byName([changed]));
  questions.push(...["b1", "b2", "b3"].map((name) => question(name)));
  await hasAsked(ASKED_AT_ONCE * 2);
  for (let turn = 0; turn < 10; turn++) await settled();
  assert.equal(asked.length, ASKED_AT_ONCE * 2);
  dispatcher.replace(byName([upstream("up", base, { maxConcurrency: SLOTS / 2 })]));
  for (const { response } of asked.slice(0, ASKED_AT_ONCE)) response.end("{}");
  for (let turn = 0; turn < 10; turn++) await settled();
  assert.equal(asked.length, ASKED_AT_ONCE * 2, "more run than the new limit allows");
  for (let at = ASKED_AT_ONCE; at < questions.length; at++) {
    await hasAsked(at + 1);
    asked[at]?.response.end("{}");
  }
  for (const one of questions) assertAnswered(await one);
});

test("a question that waits is asked at the new address after a reload, within the limit there", async (t) => {
  const { asked, dispatcher, hasAsked, question } = await keeping(t);
  const other = await keeping(t);
  const questions = ["a1", "a2", "a3", "b1", "b2"].map((name) => question(name));
  await hasAsked(ASKED_AT_ONCE);
  dispatcher.replace(byName([upstream("up", other.base, { maxConcurrency: SLOTS })]));
  await other.hasAsked(ASKED_AT_ONCE);
  for (const { response } of asked) response.end("{}");
  for (const one of questions.slice(0, ASKED_AT_ONCE)) assertAnswered(await one);
  for (let turn = 0; turn < 10; turn++) await settled();
  assert.equal(other.asked.length, ASKED_AT_ONCE);
  for (let at = 0; at < questions.length - ASKED_AT_ONCE; at++) {
    await other.hasAsked(at + 1);
    other.asked[at]?.response.end("{}");
  }
  for (const one of questions) assertAnswered(await one);
});
