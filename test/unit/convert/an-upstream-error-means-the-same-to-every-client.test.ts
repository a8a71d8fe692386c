/**
 * An error in a 200 (docs/translation-rules.md rules 46 and 50) is read in the same way for every client protocol.
 * Whether the server speaks the client's own protocol or another one changes neither who is at fault nor what is
 * recorded about the upstream's health.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../src/convert/bridge.ts";
import { isFault } from "../../../src/convert/exchange.ts";
import { answerOf, isRefusal, refusal } from "../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../src/values/protocol.ts";
import { isJsonFault, scanJson } from "../../../src/wire/json.ts";
import { CONTEXT, PERMITTED, routeTo } from "./request/translate.ts";

const USER = [{ role: "user", content: "hi" }];
const REQUESTS: Readonly<Record<Protocol, object>> = {
  chat: { model: "m", messages: USER, stop: ["END"] },
  messages: { model: "m", max_tokens: 9, messages: USER },
  responses: { model: "m", input: "hi" },
};

function exchangeOf(client: Protocol, upstream: Protocol, stream: boolean, capabilities = {}) {
  const json = { ...REQUESTS[client], stream };
  const body = Buffer.from(JSON.stringify(json));
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan));
  const request = { protocol: client, body, json, scan, model: "m", stream };
  const opened = openExchange(request, routeTo(upstream, capabilities), PERMITTED, CONTEXT);
  assert.ok(!isRefusal(opened));
  return opened;
}

const frame = (payload: object) => Buffer.from(`data: ${JSON.stringify(payload)}\n\n`);

/** How each protocol's server writes an error, in a stream and as a whole reply. */
const STREAMED: Readonly<Record<Protocol, readonly ((error: object) => Buffer)[]>> = {
  chat: [(error) => frame({ error })],
  messages: [(error) => frame({ type: "error", error })],
  responses: [
    (error) => frame({ type: "error", error }),
    (error) => frame({ type: "response.failed", response: { id: "resp_1", status: "failed", error, output: [] } }),
  ],
};
const WHOLE: Readonly<Record<Protocol, (error: object) => object>> = {
  chat: (error) => ({ error }),
  messages: (error) => ({ type: "error", error }),
  responses: (error) => ({ id: "resp_1", object: "response", status: "failed", error, output: [] }),
};

const ERRORS: readonly (readonly [object, string])[] = [
  [{ type: "invalid_request_error", code: null, message: "Bad schema" }, "upstream_rejected"],
  [{ type: "rate_limit_error", code: null, message: "Slow down" }, "upstream_rate_limit"],
  [{ type: "insufficient_quota", code: null, message: "Quota" }, "upstream_forbidden"],
  [{ type: "authentication_error", message: "Who?" }, "upstream_forbidden"],
  [{ type: "overloaded_error", message: "Busy" }, "upstream_unavailable"],
  [{ type: null, code: "context_length_exceeded", message: "Too long" }, "upstream_rejected"],
  [{ type: "api_error", code: "server_error", message: "Oops" }, "upstream_unavailable"],
];

/** Anthropic writes the code of an error into its details. */
const HELD = { type: "invalid_request_error", message: "On hold.", details: { error_code: "organization_on_hold" } };

for (const upstream of PROTOCOL_NAMES) {
  const own = upstream === "messages" ? ([[HELD, "upstream_forbidden"]] as const) : [];
  test(`an error of a ${upstream} server has the same cause for every client, streamed and whole`, () => {
    for (const client of PROTOCOL_NAMES) {
      for (const [error, cause] of [...ERRORS, ...own]) {
        const what = `${client} client: ${JSON.stringify(error)}`;
        for (const said of STREAMED[upstream]) {
          const stream = exchangeOf(client, upstream, true).stream();
          stream.push(said(error));
          assert.equal(stream.fault?.cause, cause, `stream, ${what}`);
        }
        const whole = exchangeOf(client, upstream, false).whole(Buffer.from(JSON.stringify(WHOLE[upstream](error))));
        assert.ok(isFault(whole), what);
        assert.equal(whole.cause, cause, `whole, ${what}`);
      }
    }
  });
}

test("stop strings for a responses server are matched by the gateway, whatever the model's capabilities say", () => {
  const said = { id: "msg_1", type: "message", role: "assistant", status: "completed" };
  const text = { type: "output_text", text: "before END after", annotations: [] };
  const reply = { id: "resp_1", object: "response", status: "completed", output: [{ ...said, content: [text] }] };
  const whole = exchangeOf("chat", "responses", false, { stop: "native" }).whole(Buffer.from(JSON.stringify(reply)));
  assert.ok(!isFault(whole));
  const { choices } = JSON.parse(Buffer.from(whole.body).toString());
  assert.deepEqual([choices[0].message.content, choices[0].finish_reason], ["before ", "stop"]);
});

test("the item that carries what a failed stream has said has an output index of its own", () => {
  const stream = exchangeOf("responses", "chat", true).stream();
  const delta = { id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: "half a" } }] };
  const sent = [...stream.push(frame(delta)), ...stream.push(frame({ error: { message: "gone" } }))].map(
    ({ bytes }) => bytes,
  );
  sent.push(stream.fail(answerOf(refusal("upstream_unavailable")), "req_1"));
  const events = Buffer.concat(sent)
    .toString()
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice(6)));
  const added = events.filter(({ type }) => type === "response.output_item.added");
  assert.deepEqual(
    added.map(({ output_index }) => output_index),
    [0, 1],
  );
});
