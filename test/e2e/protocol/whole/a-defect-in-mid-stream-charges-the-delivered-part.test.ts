/**
 * ARCHITECTURE.md promise 3 and docs/failure-model.md row 78: a defect of the gateway in mid-stream is reported, and
 * what the client had received by then is still charged.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { AttemptCounts, ClientFrames, StreamConverter } from "../../../../src/convert/exchange.ts";
import type { BodySink } from "../../../../src/dispatch/ask.ts";
import { relayStream, type StreamEnd } from "../../../../src/request/relay.ts";
import { systemClock } from "../../../../src/values/time.ts";

const COUNTS: AttemptCounts = { usage: undefined, final: false, produced: { bytes: 40, tokens: 10, deltas: 1 } };

/** Yields one semantic frame, then throws. */
class Breaking implements StreamConverter {
  readonly keptId = undefined;
  readonly fault = undefined;
  readonly ended = false;
  readonly opened = true;
  readonly draining = false;
  #pushes = 0;

  push(): readonly ClientFrames[] {
    this.#pushes++;
    if (this.#pushes > 1) throw new Error("a defect");
    return [{ bytes: Buffer.from("data: x\n\n"), semantic: true, terminal: false }];
  }
  end(): readonly ClientFrames[] {
    return [];
  }
  counts(): AttemptCounts {
    return COUNTS;
  }
  fail(): Uint8Array {
    return Buffer.from("failed");
  }
  truncate(): readonly ClientFrames[] {
    return [];
  }
  heartbeat(): undefined {}
}

test("on a defect the stream rejects, the upstream is stopped, and the delivered part is settled once", async () => {
  const settled: StreamEnd[] = [];
  let sink: BodySink | undefined;
  let aborts = 0;
  const relayed = relayStream({
    clock: systemClock,
    heartbeatMs: 60_000,
    reply: { gone: false, open() {}, write: () => true, end() {}, destroy() {}, onDrain() {}, onGone() {} },
    headers: {},
    converter: new Breaking(),
    body: {
      consume: (given) => {
        sink = given;
      },
      pause() {},
      resume() {},
      abort: () => {
        aborts++;
      },
      discardRest() {},
      onSilence() {},
      bytesReceived: 0,
    },
    first: [],
    bill: {
      holdExtension: undefined,
      thinks: false,
      checkpoint() {},
      disconnectPlan: () => assert.fail("the client does not disconnect"),
      settle: async (end) => void settled.push(end),
    },
    failure: () => Buffer.from("failed"),
    cut: new AbortController().signal,
    askedAtMs: systemClock.monotonicMs(),
    onFirstToken() {},
  });
  sink?.data(Buffer.from("1"));
  sink?.data(Buffer.from("2"));
  sink?.data(Buffer.from("3"));
  sink?.end();
  await assert.rejects(relayed, /a defect/);
  assert.deepEqual(settled, [
    { reason: "internal", complete: false, delivered: true, counts: { ...COUNTS, answeredBy: undefined, silentMs: 0 } },
  ]);
  assert.equal(aborts, 1);
});
