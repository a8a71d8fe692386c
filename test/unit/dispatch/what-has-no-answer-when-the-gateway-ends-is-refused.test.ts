/**
 * docs/failure-model.md row A6: a gateway that ends refuses all requests that have no answer yet: those that wait for a slot or for a turn, those that
 * an upstream has not answered, and those that come later. The slots that become free go to none of them.
 */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import test, { type TestContext } from "node:test";
import type { Answered, DispatchAsk, Unanswered } from "../../../src/dispatch/ask.ts";
import { answerOf } from "../../../src/values/errors.ts";
import {
  ask,
  assertAnswered,
  heldServer,
  httpServer,
  readRest,
  refusalIn,
  rig,
  route,
  type Seen,
  settled,
  upstream,
} from "./rig.ts";

const QUEUE = { maxConcurrency: 1, queue: { max: 3, waitMs: 60_000 } };
const OWNER = { account: "a1", key: "k1" };
const QUESTION: Partial<DispatchAsk<Seen>> = { readsInTurn: "by_client", readsFor: OWNER, needsNoSlot: true };

/** An upstream with one slot that answers when the test says so. */
async function started(t: TestContext) {
  const east = await heldServer(t);
  const { dispatcher, turns } = rig(t, [upstream("east", east.base, QUEUE)]);
  const run = (more: Partial<DispatchAsk<Seen>> = {}) =>
    dispatcher.run(ask([route("east")], { stream: false, owner: OWNER, ...more }));
  return { east, dispatcher, turns, run };
}

function assertDraining(result: Answered<Seen> | Unanswered): void {
  const { status, cause, retryAfterS, close } = answerOf(refusalIn(result));
  assert.deepEqual([status, cause, retryAfterS, close], [503, "draining", 1, true]);
}

test("a request at an upstream, and those that wait for its slot, are refused, and nothing more is sent", async (t) => {
  const { east, dispatcher, turns, run } = await started(t);
  const running = run();
  await east.next();
  const waiting = [run(), run({ stream: true })];
  await settled();
  dispatcher.stop();
  const result = await running;
  assertDraining(result);
  const [{ outcome, sentToUpstream, refusedByUpstream } = assert.fail()] = result.attempts;
  assert.deepEqual([outcome, sentToUpstream, refusedByUpstream], ["draining", true, false]);
  for (const one of waiting) {
    const refused = await one;
    assertDraining(refused);
    assert.deepEqual(refused.attempts, []);
  }
  assert.deepEqual([...dispatcher.inFlight().values()], [0]);
  assert.deepEqual(turns, [], "nothing is held against the upstream");
});

test("a question that waits for its turn is refused", async (t) => {
  const { east, dispatcher, run } = await started(t);
  const first = run(QUESTION);
  await east.next();
  const waiting = run(QUESTION);
  await settled();
  dispatcher.stop();
  assertDraining(await first);
  const refused = await waiting;
  assertDraining(refused);
  assert.deepEqual(refused.attempts, []);
});

/** An upstream with one slot whose streams go on until the test ends them. */
async function streaming(t: TestContext) {
  const replies: ServerResponse[] = [];
  const base = await httpServer(t, (request, response) => {
    request.resume();
    replies.push(response.writeHead(200, { "content-type": "text/event-stream" }));
    response.write("data: 1\n\n");
  });
  const { dispatcher } = rig(t, [upstream("east", base, QUEUE)]);
  return { dispatcher, replies };
}

test("a request that gets its slot in the moment before the end is refused, and gives the slot back", async (t) => {
  const { dispatcher, replies } = await streaming(t);
  const begun = await dispatcher.run(ask([route("east")], { owner: OWNER }));
  assertAnswered(begun);
  const waiting = dispatcher.run(ask([route("east")], { owner: OWNER }));
  await settled();
  begun.body?.abort();
  dispatcher.stop();
  const refused = await waiting;
  assertDraining(refused);
  assert.deepEqual(refused.attempts, []);
  assert.equal(replies.length, 1);
  assert.deepEqual([...dispatcher.inFlight().values()], [0]);
});

test("a stream that has begun goes on, and its slot is not waited for, neither before the end nor later", async (t) => {
  const { dispatcher, replies } = await streaming(t);
  const begun = await dispatcher.run(ask([route("east")]));
  assertAnswered(begun);
  const waiting = dispatcher.run(ask([route("east")], { owner: OWNER }));
  await settled();
  dispatcher.stop();
  assertDraining(await waiting);
  for (const more of [{ owner: OWNER }, QUESTION]) assertDraining(await dispatcher.run(ask([route("east")], more)));
  replies[0]?.end("data: 2\n\n");
  assert.deepEqual(await readRest(begun), { text: "data: 1\n\ndata: 2\n\n", fault: undefined });
});
