/**
 * docs/translation-rules.md rule 46: an unfinished response is a fault on every route: whole, streamed, and as one
 * object instead of a stream.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../src/convert/bridge.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { OWN } from "./references/rig.ts";
import { routeTo } from "./request/translate.ts";
import { clientRequest } from "./translate/rig.ts";

const SAID = {
  chat: { model: "m", messages: [{ role: "user", content: "hi" }] },
  responses: { model: "m", input: "hi", store: false },
};
const MESSAGE = { type: "message", role: "assistant", content: [{ type: "output_text", text: "hi" }] };

function opened(client: "chat" | "responses", stream: boolean) {
  const request = clientRequest(client, { ...SAID[client], stream });
  const exchange = openExchange(request, routeTo("responses"), { outputLimit: undefined, strict: false }, OWN);
  assert.ok(!isRefusal(exchange));
  return exchange;
}

function isFaultyStream(client: "chat" | "responses", body: string): boolean {
  const converter = opened(client, true).stream();
  const frames = [...converter.push(Buffer.from(body)), ...converter.end()];
  const isEnded = frames.some(({ terminal }) => terminal);
  return converter.fault !== undefined && !isEnded;
}

for (const client of ["chat", "responses"] as const) {
  for (const status of ["failed", "cancelled", "in_progress", "queued", "completed"]) {
    const isFault = status !== "completed";
    const body = JSON.stringify({ id: "resp_1", object: "response", model: "m", status, output: [MESSAGE] });

    test(`a response with the status ${status} is ${isFault ? "a fault" : "an answer"} for a ${client} client`, () => {
      assert.equal("reason" in opened(client, false).whole(Buffer.from(body)), isFault);
      assert.equal(isFaultyStream(client, body), isFault);
    });
  }

  for (const status of ["failed", "cancelled"]) {
    test(`a stream that completes with the status ${status} fails for a ${client} client`, () => {
      const begun = { id: "resp_1", model: "m", status: "in_progress", output: [] };
      const events = [
        { type: "response.created", response: begun },
        { type: "response.completed", response: { ...begun, status } },
      ];
      assert.ok(isFaultyStream(client, events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")));
    });
  }
}
