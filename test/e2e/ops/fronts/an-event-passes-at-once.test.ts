/**
 * Streaming through a front: an event reaches the client before the next one exists, and the model server notices a
 * client that disconnects. The test sends every event, so a front that waits for more would wait forever.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import {
  behindFront,
  behindOf,
  CHAT_END,
  chatFrame,
  chatStream,
  chatStreamOverHttp2,
  FRONTS,
  type Front,
  type HandUpstream,
  type ReadStream,
  startHandUpstream,
} from "./fronts.ts";

/** The promise is 50 ms, here for the median of this many events, because the test machine has other work as well. */
const DELAY_MS_MAX = 50;
const EVENTS = 25;

const WAYS: readonly [string, (front: Front, key: string) => Promise<ReadStream>][] = [
  ["HTTP/1.1", (front, key) => chatStream(front.url, key)],
  ["HTTP/2", (front, key) => chatStreamOverHttp2(front, key)],
];

for (const kind of FRONTS) {
  test(kind.name, async (t) => {
    const upstream: HandUpstream = await startHandUpstream();
    const config = behindFront();
    const here: GatewayHere = await startGatewayHere({
      config: (places) => config({ ...places, upstreamUrl: upstream.url }),
    });
    const front = await kind.start([behindOf(here)]);
    const { key } = await here.account();
    try {
      for (const [way, open] of WAYS) {
        await t.test(`${way}: one event after the other, within ${DELAY_MS_MAX} ms`, async (t) => {
          const opening = open(front, key);
          const request = await upstream.next();
          request.send(chatFrame("event-0."));
          const stream = await opening;
          assert.equal(stream.status, 200);
          await stream.until("event-0.");
          const delaysMs: number[] = [];
          for (let i = 1; i <= EVENTS; i++) {
            const sentAtMs = performance.now();
            request.send(chatFrame(`event-${i}.`));
            await stream.until(`event-${i}.`);
            delaysMs.push(performance.now() - sentAtMs);
          }
          request.send(chatFrame("", "stop") + CHAT_END);
          request.end();
          const { text, cut } = await stream.end();
          assert.ok(!cut && text.endsWith(CHAT_END));
          const median = delaysMs.sort((a, b) => a - b)[EVENTS >> 1] as number;
          t.diagnostic(`median ${median.toFixed(1)} ms, longest ${delaysMs.at(-1)?.toFixed(1)} ms`);
          assert.ok(median < DELAY_MS_MAX, `${median} ms`);
        });

        await t.test(`${way}: the model server notices a client that disconnects`, async () => {
          const opening = open(front, key);
          const request = await upstream.next();
          request.send(chatFrame("first."));
          const stream = await opening;
          await stream.until("first.");
          stream.leave();
          await request.closed;
          assert.ok(!request.res.writableFinished, "the answer was not complete");
        });
      }
    } finally {
      await front.stop();
      await here.close();
      await upstream.close();
    }
  });
}
