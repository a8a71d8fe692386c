/** Heartbeats stand between the events of a stream: its last event stays the last, as clients that stop reading there expect. */
import assert from "node:assert/strict";
import test from "node:test";
import { PROTOCOLS, type Protocol } from "../../../src/values/protocol.ts";
import { requestBody, withSimulator } from "./clients.ts";

const ENDS: Readonly<Record<Protocol, RegExp>> = {
  chat: /data: \[DONE\]\n\n$/,
  messages: /event: message_stop\ndata: [^\n]+\n\n$/,
  responses: /event: response\.completed\ndata: [^\n]+\n\n$/,
};

for (const protocol of ["chat", "messages", "responses"] as const) {
  test(`${protocol}: a heartbeat after each event, and none after the last`, async () => {
    await withSimulator(async (simulator) => {
      const read = async (pings?: number): Promise<string> => {
        simulator.program({ text: "hello", ...(pings === undefined ? {} : { pings }) });
        const response = await fetch(`${simulator.url}${PROTOCOLS[protocol].upstreamPath}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(requestBody(protocol, { stream: true })),
        });
        return response.text();
      };
      const [plain, beating] = [await read(), await read(1)];
      assert.match(plain, ENDS[protocol]);
      assert.match(beating, ENDS[protocol]);
      assert.ok(beating.length > plain.length, "there are heartbeats");
    });
  });
}
