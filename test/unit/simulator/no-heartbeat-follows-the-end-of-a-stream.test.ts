/** Heartbeats stand between the events of a stream: its last event stays the last, as clients that stop reading there expect. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Protocol } from "../../../src/values/protocol.ts";
import { streamText, withSimulator } from "./clients.ts";

const ENDS: Readonly<Record<Protocol, RegExp>> = {
  chat: /data: \[DONE\]\n\n$/,
  messages: /event: message_stop\ndata: [^\n]+\n\n$/,
  responses: /event: response\.completed\ndata: [^\n]+\n\n$/,
};

for (const protocol of ["chat", "messages", "responses"] as const) {
  test(`${protocol}: a heartbeat after each event, and none after the last`, async () => {
    await withSimulator(async (simulator) => {
      const [plain, beating] = [
        await streamText(simulator, protocol, { text: "hello" }),
        await streamText(simulator, protocol, { text: "hello", pings: 1 }),
      ];
      assert.match(plain, ENDS[protocol]);
      assert.match(beating, ENDS[protocol]);
      assert.ok(beating.length > plain.length, "there are heartbeats");
    });
  });
}
