/**
 * With each piece that a client is given, the counts of the stream are recorded for its bill and compared with its
 * hold, the piece included: after a kill the journal has what was delivered (ARCHITECTURE.md promises 1 and 3).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClientFrames, StreamConverter } from "../../../src/convert/exchange.ts";
import type { BodySink } from "../../../src/dispatch/ask.ts";
import type { HoldExtension } from "../../../src/request/hold-extension.ts";
import { relayStream } from "../../../src/request/relay.ts";
import type { SeenCounts } from "../../../src/request/silence.ts";
import { NO_USAGE, type Usage } from "../../../src/values/tokens/usage.ts";

/** A converter that counts each byte as a delta, and reads `#` as the upstream's count. */
function counting() {
  let deltas = 0;
  let usage: Usage | undefined;
  const push = (chunk: Uint8Array): readonly ClientFrames[] => {
    deltas += chunk.length;
    if (chunk.includes("#".charCodeAt(0))) usage = { ...NO_USAGE, output: 90 };
    return [{ bytes: chunk, semantic: true, terminal: false }];
  };
  const counts = () => ({ usage, final: false, produced: { bytes: deltas, tokens: deltas, deltas } });
  return { push, counts, fault: undefined, draining: false } as unknown as StreamConverter;
}

test("each piece is in the checkpoints and in the counts compared with the hold, the beginning included", () => {
  let nowMs = 0;
  const noted: [deltas: number, silentMs: number][] = [];
  const looked: number[] = [];
  let sink: BodySink | undefined;
  const converter = counting();
  const holdExtension = {
    onAnswer() {},
    look({ produced }: SeenCounts) {
      looked.push(produced.deltas);
      return "go";
    },
  } as unknown as HoldExtension;
  void relayStream({
    clock: { monotonicMs: () => nowMs, wallMs: () => nowMs, after: () => () => {} },
    askedAtMs: 0,
    heartbeatMs: 60_000,
    reply: { gone: false, open() {}, write: () => true, end() {}, destroy() {}, onDrain() {}, onGone() {} },
    headers: {},
    converter,
    body: {
      ...{ pause() {}, resume() {}, abort() {}, discardRest() {}, onSilence() {}, bytesReceived: 0 },
      consume: (given) => {
        sink = given;
      },
    },
    first: converter.push(Buffer.from("a")),
    bill: {
      ...{ holdExtension, thinks: false, disconnectPlan: () => undefined, settle: async () => {} },
      checkpoint: ({ produced, silentMs }) => void noted.push([produced.deltas, silentMs]),
    },
    failure: () => Buffer.from("failed"),
    onFirstToken() {},
    cut: new AbortController().signal,
  });
  nowMs = 4_000;
  sink?.data(Buffer.from("bc"));
  nowMs = 4_500;
  sink?.data(Buffer.from("d"));
  nowMs = 9_000;
  sink?.data(Buffer.from("#"));
  // The first second of a pause does not count as silence; an upstream's count includes what was hidden before it.
  assert.deepEqual(noted, [
    [1, 0],
    [3, 3_000],
    [4, 3_000],
    [5, 0],
  ]);
  assert.deepEqual(looked, [1, 3, 4, 5]);
});
