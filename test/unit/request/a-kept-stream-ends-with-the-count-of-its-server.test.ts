/**
 * A stream whose server keeps the answer, and which ends without a count, is charged by what the server says about that answer: its
 * client can retrieve it (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { DisconnectPlan } from "../../../src/request/disconnect.ts";
import type { KeptState } from "../../../src/request/stored/kept-answer.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { Relayed } from "./rig.ts";

const LEAVING: DisconnectPlan = {
  ...{ forMs: Number.POSITIVE_INFINITY, bytesMax: 1_000, doubt: undefined },
  covers: () => true,
  begun: () => () => {},
};
const PRODUCED = { bytes: 900, tokens: 300, deltas: 1 };
const COUNTED: KeptState = {
  state: "ended",
  counts: { usage: { ...NO_USAGE, input: 10, output: 4_000 }, final: true, produced: PRODUCED },
};
const UNCOUNTED: KeptState = { state: "ended", counts: { usage: undefined, final: false, produced: PRODUCED } };
const RUNNING: KeptState = { state: "running" };
const NONE: KeptState = { state: "none" };
const UNKNOWN: KeptState = { state: "unknown" };

for (const [title, kept, cause, expected] of [
  ["an answer that has ended is charged by its count", COUNTED, "upstream_timeout", [true, false, 4_000]],
  ["also if the connection broke", COUNTED, "upstream_unavailable", [true, false, 4_000]],
  ["one without a count is estimated from all of it", UNCOUNTED, "upstream_unavailable", [true, true, undefined]],
  ["one that takes longer than its request is charged", RUNNING, "upstream_timeout", [true, true, undefined]],
  ["one whose connection broke is not guessed at", RUNNING, "upstream_unavailable", [false, false, undefined]],
  ["an answer that its server does not know is free", NONE, "upstream_timeout", [false, false, undefined]],
  ["so is one about which its server does not tell", UNKNOWN, "upstream_timeout", [false, false, undefined]],
] as const) {
  test(title, async () => {
    const stream = new Relayed({ semantic: false, kept: async () => kept });
    stream.upstreamFails(cause);
    const { reason, complete, delivered, stopped, counts } = await stream.ended;
    assert.deepEqual([reason, complete], [cause, false]);
    assert.deepEqual([delivered, stopped, counts.usage?.output], expected);
    assert.equal(counts.countedLater === true, kept.state === "ended", "the pace of a model is not learned from it");
    assert.equal(counts.produced.bytes, kept.state === "ended" ? PRODUCED.bytes : 1);
  });
}

test("the end of a body without a terminal event is asked about, too", async () => {
  const stream = new Relayed({ semantic: false, kept: async () => COUNTED });
  stream.upstreamEnds();
  const { reason, counts } = await stream.ended;
  assert.deepEqual([reason, counts.usage?.output], ["upstream_invalid", 4_000]);
});

test("a fault that the server reports is not", async () => {
  let asked = 0;
  const stream = new Relayed({
    semantic: false,
    kept: async () => {
      asked++;
      return COUNTED;
    },
  });
  stream.fault = { cause: "upstream_unavailable", code: "server_error", reason: "it failed" };
  stream.upstreamEnds();
  assert.equal((await stream.ended).delivered, false);
  assert.equal(asked, 0);
});

for (const [title, last, owed] of [
  ["what it said before applies if it does not tell", UNKNOWN, true],
  ["but not if it has no such answer any more", NONE, false],
] as const) {
  test(`when an answer takes longer than its request, ${title}`, async () => {
    const answers: KeptState[] = [RUNNING, last];
    const stream = new Relayed({ semantic: false, kept: async () => answers.shift() ?? NONE });
    assert.equal(await stream.isWorking?.(), true);
    stream.upstreamFails("upstream_timeout");
    const { delivered, stopped } = await stream.ended;
    assert.deepEqual([delivered, stopped], [owed, owed]);
  });
}

test("what it said at an earlier silence than the last one does not apply", async () => {
  const answers: KeptState[] = [RUNNING, UNKNOWN, UNKNOWN];
  const stream = new Relayed({ semantic: false, kept: async () => answers.shift() ?? NONE });
  assert.equal(await stream.isWorking?.(), true);
  assert.equal(await stream.isWorking?.(), false);
  stream.say();
  stream.upstreamFails("upstream_timeout");
  assert.equal((await stream.ended).delivered, false);
});

test("a silent upstream that still writes is waited for; its answer later counts as new", async () => {
  const answers: KeptState[] = [RUNNING, RUNNING, COUNTED];
  const stream = new Relayed({ semantic: false, kept: async () => answers.shift() ?? UNKNOWN });
  assert.equal(await stream.isWorking?.(), true);
  assert.equal(await stream.isWorking?.(), true);
  stream.upstreamFails("upstream_timeout");
  assert.equal((await stream.ended).counts.usage?.output, 4_000);
});

test("one that does not is asked once, whatever it has sent before", async () => {
  const answers: KeptState[] = [COUNTED];
  const stream = new Relayed({ semantic: false, kept: async () => answers.shift() ?? UNKNOWN });
  stream.say();
  assert.equal(await stream.isWorking?.(), false);
  stream.upstreamFails("upstream_timeout");
  assert.equal((await stream.ended).counts.usage?.output, 4_000);
});

test("what it said before it went on is forgotten", async () => {
  const answers: KeptState[] = [UNKNOWN, COUNTED];
  const stream = new Relayed({ semantic: false, kept: async () => answers.shift() ?? UNKNOWN });
  assert.equal(await stream.isWorking?.(), false);
  stream.say();
  stream.upstreamFails("upstream_timeout");
  assert.equal((await stream.ended).counts.usage?.output, 4_000);
});

test("what it said is forgotten, too, if it has gone on meanwhile", async () => {
  const first = Promise.withResolvers<KeptState>();
  const answers = [first.promise, Promise.resolve(COUNTED)];
  const stream = new Relayed({ semantic: false, kept: () => answers.shift() ?? Promise.resolve(UNKNOWN) });
  const isWorking = stream.isWorking?.();
  stream.say();
  first.resolve(UNKNOWN);
  assert.equal(await isWorking, false);
  stream.upstreamFails("upstream_unavailable");
  assert.equal((await stream.ended).counts.usage?.output, 4_000);
});

test("what the stream has shown and counted applies, even if its server leaves it out of the answer", async () => {
  const nothing = { bytes: 0, tokens: 0, deltas: 0 };
  const kept: KeptState = { state: "ended", counts: { usage: undefined, final: false, produced: nothing } };
  const stream = new Relayed({ kept: async () => kept });
  stream.countedSoFar = { ...NO_USAGE, input: 7 };
  stream.upstreamFails("upstream_timeout");
  const { stopped, counts } = await stream.ended;
  assert.deepEqual([stopped, counts.produced], [true, { bytes: 1, tokens: 1, deltas: 1 }]);
  assert.deepEqual([counts.usage?.input, counts.final], [7, false]);
});

test("a client that has disconnected before pays the count", async () => {
  const stream = new Relayed({ semantic: false, leaving: LEAVING, kept: async () => COUNTED });
  stream.clientLeaves();
  stream.upstreamFails("upstream_timeout");
  const { reason, delivered, counts } = await stream.ended;
  assert.deepEqual([reason, delivered, counts.usage?.output], ["client_gone", true, 4_000]);
});

for (const [title, leaving] of [
  ["pays the count", LEAVING],
  ["pays it, too, if its hold is used up", undefined],
] as const) {
  test(`a client that disconnects meanwhile ${title}`, async () => {
    const answer = Promise.withResolvers<KeptState>();
    const stream = new Relayed({ semantic: false, leaving, kept: () => answer.promise });
    stream.upstreamFails("upstream_timeout");
    stream.clientLeaves();
    assert.equal(stream.settled.length, 0, "the answer is waited for");
    answer.resolve(COUNTED);
    const { reason, delivered, counts } = await stream.ended;
    assert.deepEqual([reason, delivered, counts.usage?.output], ["client_gone", true, 4_000]);
  });
}

test("the deadline of a drain does not wait for the answer", async () => {
  const cut = new AbortController();
  const answer = Promise.withResolvers<KeptState>();
  const stream = new Relayed({ semantic: false, cut: cut.signal, kept: () => answer.promise });
  stream.upstreamFails("upstream_timeout");
  cut.abort();
  assert.equal((await stream.ended).reason, "draining");
  answer.resolve(COUNTED);
  await answer.promise;
  assert.equal(stream.settled.length, 1);
});

test("a stream that nobody keeps is not asked about", async () => {
  const stream = new Relayed({ semantic: false });
  assert.equal(stream.isWorking, undefined);
  stream.upstreamFails("upstream_timeout");
  assert.equal((await stream.ended).delivered, false);
});

test("a client that has left before the first frame cannot have the id, so nothing is asked and charged", async () => {
  let asked = 0;
  const stream = new Relayed({
    ...{ semantic: false, gone: true, leaving: LEAVING },
    kept: async () => {
      asked++;
      return COUNTED;
    },
  });
  assert.equal(await stream.isWorking?.(), false);
  stream.upstreamFails("upstream_timeout");
  const { delivered, counts } = await stream.ended;
  assert.deepEqual([delivered, counts.final, asked], [false, false, 0]);
});

test("a stream that has its count is not asked about, also if its client has disconnected", async () => {
  let asked = 0;
  const stream = new Relayed({
    semantic: false,
    leaving: LEAVING,
    kept: async () => {
      asked++;
      return COUNTED;
    },
  });
  stream.clientLeaves();
  stream.final = true;
  stream.upstreamEnds();
  assert.equal((await stream.ended).counts.usage?.output, 1);
  assert.equal(asked, 0);
});
