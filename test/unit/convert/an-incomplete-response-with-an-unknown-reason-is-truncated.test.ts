/** docs/translation-rules.md rule 43: a client must not take half an answer for a whole one, whatever the reason is called. */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../src/convert/bridge.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { OWN } from "./references/rig.ts";
import { routeTo } from "./request/translate.ts";
import { clientRequest } from "./translate/rig.ts";

const MESSAGE = { type: "message", role: "assistant", content: [{ type: "output_text", text: "half an ans" }] };

const CLIENTS = {
  chat: '"finish_reason":"length"',
  messages: '"stop_reason":"max_tokens"',
} as const;

function opened(client: keyof typeof CLIENTS, stream: boolean) {
  const said = { model: "m", max_tokens: 50, messages: [{ role: "user", content: "hi" }], stream };
  const permitted = { outputLimit: undefined, strict: false };
  const exchange = openExchange(clientRequest(client, said), routeTo("responses"), permitted, OWN);
  assert.ok(!isRefusal(exchange));
  return exchange;
}

for (const reason of ["wandered_off", "none", 7]) {
  const response = {
    ...{ id: "resp_1", object: "response", model: "m", status: "incomplete", output: [MESSAGE] },
    incomplete_details: { reason },
  };
  for (const client of ["chat", "messages"] as const) {
    test(`whole, for a ${client} client, with the reason ${JSON.stringify(reason)}`, () => {
      const read = opened(client, false).whole(Buffer.from(JSON.stringify(response)));
      assert.ok("body" in read);
      assert.ok(Buffer.from(read.body).toString().includes(CLIENTS[client]));
    });

    test(`streamed, for a ${client} client, with the reason ${JSON.stringify(reason)}`, () => {
      const converter = opened(client, true).stream();
      const event = `data: ${JSON.stringify({ type: "response.incomplete", response })}\n\n`;
      const frames = [...converter.push(Buffer.from(event)), ...converter.end()];
      const text = Buffer.concat(frames.map(({ bytes }) => bytes)).toString();
      assert.ok(text.includes(CLIENTS[client]), text);
    });
  }
}
