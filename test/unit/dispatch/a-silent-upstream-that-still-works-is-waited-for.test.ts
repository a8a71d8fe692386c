/**
 * Before a silent body fails, its reader may find out whether the upstream still works, as for an answer that its server keeps
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md). Only the request's own end limits the time of that.
 */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test, { type TestContext } from "node:test";
import {
  ask,
  assertAnswered,
  chunked,
  FakeClock,
  rawServer,
  rig,
  route,
  SSE_HEAD,
  settled,
  timeouts,
  upstream,
} from "./rig.ts";

const IDLE_MS = 1_000;
const TOTAL_MS = 10_000;

async function scene(t: TestContext) {
  const clock = new FakeClock();
  const opened = Promise.withResolvers<Socket>();
  const base = await rawServer(t, ({ socket }) => {
    socket.write(`${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: first\n\n")}`);
    opened.resolve(socket);
  });
  const { dispatcher } = rig(t, [upstream("east", base, timeouts({ idleMs: IDLE_MS }))], clock);
  const result = await dispatcher.run(ask([route("east")], { deadlineMs: clock.monotonicMs() + TOTAL_MS }));
  assertAnswered(result);
  const { body } = result;
  assert.ok(body);
  const questions: PromiseWithResolvers<boolean>[] = [];
  const ended = Promise.withResolvers<string>();
  let said = Promise.withResolvers<string>();
  body.onSilence(() => {
    const question = Promise.withResolvers<boolean>();
    questions.push(question);
    return question.promise;
  });
  body.consume({
    data: (chunk) => said.resolve(Buffer.from(chunk).toString()),
    end: () => ended.resolve("end"),
    error: ({ reason }) => ended.resolve(reason),
  });
  return {
    clock,
    body,
    questions,
    ended: ended.promise,
    /** The upstream sends this, and it arrives. */
    async says(text: string) {
      said = Promise.withResolvers<string>();
      (await opened.promise).write(chunked(text));
      assert.equal(await said.promise, text);
    },
    async ends() {
      (await opened.promise).write("0\r\n\r\n");
    },
  };
}

test("an upstream that works may be silent for as long again", async (t) => {
  const { clock, questions, ended, says, ends } = await scene(t);
  for (let times = 0; times < 3; times++) {
    clock.advance(IDLE_MS - 1);
    assert.equal(questions.length, times);
    clock.advance(1);
    assert.equal(questions.length, times + 1);
    questions[times]?.resolve(true);
    await settled();
  }
  await says("data: second\n\n");
  await ends();
  assert.equal(await ended, "end");
});

test("one that does not work fails as silent", async (t) => {
  const { clock, questions, ended } = await scene(t);
  clock.advance(IDLE_MS);
  questions[0]?.resolve(false);
  assert.equal(await ended, `${IDLE_MS} ms of silence inside the body`);
});

test("one that sends something meanwhile works", async (t) => {
  const { clock, questions, ended, says } = await scene(t);
  clock.advance(IDLE_MS);
  await says("data: second\n\n");
  questions[0]?.resolve(false);
  await settled();
  clock.advance(IDLE_MS);
  assert.equal(questions.length, 2, "its next silence is a new one");
  questions[1]?.resolve(false);
  assert.match(await ended, /silence/);
});

test("one that ends meanwhile has ended", async (t) => {
  const { clock, questions, ended, ends } = await scene(t);
  clock.advance(IDLE_MS);
  await ends();
  assert.equal(await ended, "end");
  questions[0]?.resolve(true);
  await settled();
  assert.equal(clock.pending, 0);
});

test("the end of the request does not wait for the answer", async (t) => {
  const { clock, questions, ended } = await scene(t);
  clock.advance(IDLE_MS);
  clock.advance(TOTAL_MS);
  assert.equal(await ended, "the request's time is over");
  questions[0]?.resolve(true);
  await settled();
  assert.equal(clock.pending, 0);
});

test("a body that its reader has aborted does not fail later", async (t) => {
  const { clock, questions, body } = await scene(t);
  clock.advance(IDLE_MS);
  body.abort();
  questions[0]?.resolve(true);
  await settled();
  assert.equal(clock.pending, 0);
});
