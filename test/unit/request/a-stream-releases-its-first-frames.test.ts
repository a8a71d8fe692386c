/**
 * ARCHITECTURE.md promise 13: the beginning of a stream is part of a read of up to 64 KB. Once it is with the socket,
 * the stream holds no reference to it, however long the stream runs.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { StreamConverter } from "../../../src/convert/exchange.ts";
import type { BodySink } from "../../../src/dispatch/ask.ts";
import { relayStream } from "../../../src/request/relay.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
setFlagsFromString("--no-expose-gc");

/** Maximum number of collections: a reference may last until the end of the turn in which it was used. */
const LOOKS_MAX = 20;

/** @returns the beginning of the stream, and what keeps the stream alive. */
function begin(): { first: WeakRef<Uint8Array>; sink: BodySink; written: () => number } {
  const bytes = Buffer.alloc(65_536, "a");
  let sink: BodySink | undefined;
  let written = 0;
  const counts = { usage: undefined, final: false, produced: { bytes: 1, tokens: 1, deltas: 1 } };
  void relayStream({
    clock: { monotonicMs: () => 0, wallMs: () => 0, after: () => () => {} },
    askedAtMs: 0,
    heartbeatMs: 60_000,
    reply: {
      ...{ gone: false, open() {}, end() {}, destroy() {}, onDrain() {}, onGone() {} },
      write(piece: Uint8Array) {
        written += piece.length;
        return true;
      },
    },
    headers: {},
    converter: {
      ...{ push: () => [], counts: () => counts, fault: undefined, draining: false },
    } as unknown as StreamConverter,
    body: {
      ...{ pause() {}, resume() {}, abort() {}, discardRest() {}, onSilence() {}, bytesReceived: 0 },
      consume: (given) => {
        sink = given;
      },
    },
    first: [{ bytes, semantic: true, terminal: false }],
    bill: {
      ...{ holdExtension: undefined, thinks: false, disconnectPlan: () => undefined },
      ...{ checkpoint() {}, settle: async () => {} },
    },
    failure: () => Buffer.from("failed"),
    onFirstToken() {},
    cut: new AbortController().signal,
  });
  return { first: new WeakRef(bytes), sink: sink as unknown as BodySink, written: () => written };
}

test("the first frames are garbage-collected while the stream runs", async () => {
  const { first, sink, written } = begin();
  assert.equal(written(), 65_536);
  for (let look = 0; look < LOOKS_MAX && first.deref() !== undefined; look++) {
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
  }
  assert.ok(first.deref() === undefined, "the frames are still held");
  sink.data(Buffer.from("b"));
});
