/**
 * A client that has held back a stream for too long is disconnected. Its connection reports that only at the end of the
 * turn, and until then the upstream can send the rest of its answer. This must not end the stream as a defect.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Reply } from "../../../src/accept/reply.ts";
import type { StreamConverter } from "../../../src/convert/exchange.ts";
import type { BodySink } from "../../../src/dispatch/ask.ts";
import { relayStream } from "../../../src/request/relay.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { request, startEcho } from "../accept/echo.ts";
import { FakeClock } from "../dispatch/rig.ts";

/** More than a socket of this machine takes from a client that reads nothing. */
const FRAME = { bytes: Buffer.alloc(16 * 1024 * 1024, "a"), semantic: true, terminal: false };
const HELD_BACK_MS = 60_000;

test("what its upstream sends right after the disconnect is counted and not written", async (t) => {
  const opened = Promise.withResolvers<Reply>();
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    opened.resolve(reply);
    await reply.finished;
  });
  const client = new RawSocket(echo.target).send(request({}));
  client.socket.pause();
  const reply = await opened.promise;
  const clock = new FakeClock();
  let sink: BodySink | undefined;
  let isFinal = false;
  const converter = {
    ...{ ended: false, draining: false, fault: undefined, keptId: "resp_1" },
    push: () => [FRAME],
    end: () => [{ ...FRAME, semantic: false, terminal: true }],
    counts: () => ({
      ...{ usage: isFinal ? { ...NO_USAGE, input: 1, output: 1 } : undefined, final: isFinal },
      produced: { bytes: 1, tokens: 1, deltas: 1 },
    }),
  } as unknown as StreamConverter;
  const ended = relayStream({
    ...{ clock, askedAtMs: clock.monotonicMs(), heartbeatMs: HELD_BACK_MS, heldBackMsMax: HELD_BACK_MS },
    ...{ headers: {}, first: [FRAME], reply, converter },
    body: {
      bytesReceived: 0,
      ...{ onSilence() {}, discardRest() {}, pause() {}, resume() {}, abort() {} },
      consume: (consumer) => {
        sink = consumer;
      },
    },
    bill: {
      holdExtension: undefined,
      thinks: false,
      checkpoint() {},
      disconnectPlan: () => undefined,
      async settle() {},
    },
    failure: () => Buffer.from("failed"),
    onFirstToken() {},
    cut: new AbortController().signal,
  });
  clock.advance(HELD_BACK_MS);
  isFinal = true;
  sink?.data(Buffer.from("b"));
  sink?.end();
  assert.equal((await ended).reason, "complete");
  client.close();
  assert.deepEqual(echo.crashes, []);
});
