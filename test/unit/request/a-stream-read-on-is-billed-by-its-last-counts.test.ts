/**
 * A stream that is read on after its client has disconnected is recorded and billed by the converter's counts after its
 * last piece and after its end: only the end may complete the upstream's count (ARCHITECTURE.md promise 3).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClientFrames, StreamConverter } from "../../../src/convert/exchange.ts";
import type { BodySink } from "../../../src/dispatch/ask.ts";
import type { DisconnectPlan } from "../../../src/request/disconnect.ts";
import { relayStream, type StreamEnd } from "../../../src/request/relay.ts";
import { DisconnectedStreams } from "../../../src/settle/disconnected-streams.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { NO_USAGE, type Usage } from "../../../src/values/tokens/usage.ts";

const TAG = "TAG" as AccountTag;

/**
 * A converter that counts each byte as a delta, and has the upstream's count at the end of the bytes.
 * @param semantic whether any of it is output.
 */
function counting(semantic: boolean) {
  let deltas = 0;
  let usage: Usage | undefined;
  const converter = {
    push(chunk: Uint8Array): readonly ClientFrames[] {
      deltas += chunk.length;
      return [{ bytes: chunk, semantic, terminal: false }];
    },
    end(): readonly ClientFrames[] {
      usage = { ...NO_USAGE, output: 90 };
      return [];
    },
    counts: () => ({ usage, final: usage !== undefined, produced: { bytes: deltas, tokens: deltas, deltas } }),
    ...{ fault: undefined, draining: false, ended: false },
  };
  return converter as unknown as StreamConverter;
}

/**
 * A stream that has begun and whose client has disconnected.
 * @param kept whether the client has its id, and no output yet.
 */
function left({ kept = false } = {}) {
  const noted: number[] = [];
  const ends: StreamEnd[] = [];
  const streams = new DisconnectedStreams();
  const leaving: DisconnectPlan = {
    ...{ forMs: Number.POSITIVE_INFINITY, bytesMax: 1_000, doubt: undefined },
    covers: () => true,
    begun: (end) => streams.add(TAG, end),
  };
  let leave = () => {};
  let aborted = false;
  let sink: BodySink | undefined;
  const converter = counting(!kept);
  void relayStream({
    clock: { monotonicMs: () => 0, wallMs: () => 0, after: () => () => {} },
    askedAtMs: 0,
    heartbeatMs: 60_000,
    reply: {
      ...{ gone: false, open() {}, write: () => true, end() {}, destroy() {}, onDrain() {} },
      onGone: (task) => {
        leave = task;
      },
    },
    headers: {},
    converter,
    body: {
      ...{ pause() {}, resume() {}, discardRest() {}, onSilence() {}, bytesReceived: 0 },
      abort() {
        aborted = true;
      },
      consume: (given) => {
        sink = given;
      },
    },
    first: converter.push(Buffer.from("a")),
    askKept: kept ? async () => ({ state: "unknown" }) : undefined,
    bill: {
      ...{ holdExtension: undefined, thinks: false, disconnectPlan: () => leaving },
      checkpoint: ({ produced }) => void noted.push(produced.deltas),
      settle: async (end) => void ends.push(end),
    },
    failure: () => Buffer.from("failed"),
    onFirstToken() {},
    cut: new AbortController().signal,
  });
  leave();
  assert.equal(ends.length, 0, "the upstream is still read");
  return { noted, ends, streams, sink: sink as unknown as BodySink, isAborted: () => aborted };
}

test("each piece that is read on is included in the checkpoints", () => {
  const { noted, sink } = left();
  sink.data(Buffer.from("bc"));
  sink.data(Buffer.from("d"));
  assert.deepEqual(noted, [1, 3, 4]);
});

test("an answer that can be retrieved later has checkpoints before its first output, too", () => {
  const { noted, sink } = left({ kept: true });
  sink.data(Buffer.from("bc"));
  assert.deepEqual(noted, [3]);
});

test("a count that only the end of the bytes completes is in the bill", () => {
  const { ends, sink } = left();
  sink.data(Buffer.from("bc"));
  sink.end();
  assert.deepEqual(
    ends.map(({ reason, counts }) => [reason, counts.usage?.output, counts.produced.deltas]),
    [["client_gone", 90, 3]],
  );
});

test("when its account sends another request the stream ends at once, with all that was read, and only once", () => {
  const { ends, streams, sink, isAborted } = left();
  sink.data(Buffer.from("bc"));
  streams.end(TAG);
  assert.deepEqual([ends.map(({ counts }) => counts.produced.deltas), isAborted()], [[3], true]);
  streams.end(TAG);
  sink.data(Buffer.from("d"));
  sink.end();
  assert.equal(ends.length, 1);
});
