/**
 * A server that was asked for a stream and sends one JSON object that is no answer has failed, as it has with a whole
 * reply (docs/translation-rules.md rules 46 and 53): the client gets an error with a status and not an empty answer that
 * looks complete, and it pays nothing.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { DIRECTIONS, limited, pricedConfig } from "../../money/bill/rig.ts";
import { ask, assertAtRest, type Fields, usageLines } from "../whole/asking.ts";

let here: GatewayHere;
before(async () => {
  const health = { failures: 1_000, failure_percent: 100, outcomes_min: 1_000 };
  const patient = { health };
  here = await startGatewayHere({
    config: (places) =>
      pricedConfig(places, { upstreams: { "up-chat": patient, "up-messages": patient, "up-responses": patient } }),
  });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const PART = { type: "output_text", text: "Hello", annotations: [] };
const ITEM = { type: "message", id: "msg_1", status: "completed", role: "assistant", content: [PART] };
const RESPONSE = { id: "resp_1", object: "response", created_at: 1, model: "m", output: [ITEM] };

/** By the upstream's protocol. */
const OBJECTS: Readonly<Record<Protocol, Readonly<Record<string, Fields>>>> = {
  chat: {
    "an empty object": {},
    "an error of plain text next to choices": { error: "out of memory", choices: [{ index: 0, message: {} }] },
    "a choice that broke off": {
      choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "error" }],
    },
    "no choice": { object: "chat.completion", choices: [] },
    "a choice without a message": { object: "chat.completion", choices: [{ index: 0, finish_reason: "stop" }] },
    "one chunk of a stream": { choices: [{ index: 0, delta: { content: "Hello" }, finish_reason: "stop" }] },
  },
  messages: {
    "an empty object": {},
    "an error of plain text": { type: "message", content: [{ type: "text", text: "Hello" }], error: "out of memory" },
    "a message that broke off": { type: "message", content: [{ type: "text", text: "Hello" }], stop_reason: "error" },
  },
  responses: {
    "an empty object": {},
    "an explanation": { detail: "The model is being loaded." },
    "an error of plain text": { error: "out of memory" },
    "an error next to output": { ...RESPONSE, status: "completed", error: { code: "server_error", message: "x" } },
    "a response that is not finished": { ...RESPONSE, status: "in_progress" },
    "a response that failed": { ...RESPONSE, status: "failed" },
    "a response without output": { ...RESPONSE, status: "completed", output: null },
  },
};

for (const [client, upstream] of DIRECTIONS) {
  for (const [what, body] of Object.entries(OBJECTS[upstream])) {
    test(`${client} on ${upstream}: ${what} is an error, and its client pays nothing`, async () => {
      const account = await here.account();
      here.simulator.program({ fault: { status: 200, body } }, { times: 20 });
      const reply = await ask(here, client, account.key, limited(client, upstream, 50, { stream: true }));
      const text = await reply.text();
      assert.equal(reply.status, 403, text);
      assert.match(text, /"cause":"upstream_(?:invalid|unavailable)"/);
      await assertAtRest(here, account);
      assert.deepEqual(
        (await usageLines(here, account)).filter(({ kind }) => kind === "usage"),
        [],
      );
    });
  }
}
