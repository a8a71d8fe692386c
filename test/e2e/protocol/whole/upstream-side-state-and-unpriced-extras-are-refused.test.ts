/**
 * ARCHITECTURE.md promise 14: no account reaches another's state through the upstream's credential, and nothing without
 * a price can be bought.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere();
  account = await here.account();
});
after(() => here.close());

const said = (part: object) => [{ role: "user", content: [part] }];

/** Body fields, and the member that the refusal names. */
const CASES: readonly (readonly [Protocol, Fields, string])[] = [
  ["responses", { previous_response_id: "resp_1" }, "previous_response_id"],
  ["responses", { conversation: "conv_1" }, "conversation"],
  ["responses", { conversation: { id: "conv_1" } }, "conversation"],
  ["responses", { prompt: { id: "pmpt_1" } }, "prompt"],
  ["responses", { background: true }, "background"],
  // A longer window is cheaper at OpenAI, and an id groups what may be requests of several tenants.
  ["responses", { background_options: { completion_window: "8h" } }, "background_options"],
  ["responses", { background_options: { continuation_id: "c" } }, "background_options"],
  ["responses", { input: [{ type: "item_reference", id: "msg_1" }] }, "input[0].type"],
  ["responses", { input: said({ type: "input_file", file_id: "file-1" }) }, "input[0].content[0].file_id"],
  ["responses", { input: said({ type: "input_image", file_id: "file-1" }) }, "input[0].content[0].file_id"],
  ["responses", { tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }, "tools"],
  ["responses", { tools: [{ type: "code_interpreter", container: "cntr_1" }] }, "tools"],
  ["responses", { tools: [{ type: "web_search" }] }, "tools"],
  ["responses", { tools: [{ type: "image_generation" }] }, "tools"],
  ["responses", { service_tier: "priority" }, "service_tier"],
  ["chat", { messages: said({ type: "file", file: { file_id: "file-1" } }) }, "messages[0].content[0].file.file_id"],
  ["chat", { messages: [{ role: "assistant", audio: { id: "audio_1" } }] }, "messages[0].audio.id"],
  // vLLM keeps media under this name, for whoever names it next.
  ["chat", { messages: said({ type: "image_url", image_url: null, uuid: "a" }) }, "messages[0].content[0].uuid"],
  ["chat", { messages: said({ video_url: { url: "https://a.test/a" }, uuid: "a" }) }, "messages[0].content[0].uuid"],
  ["chat", { web_search_options: {} }, "web_search_options"],
  // Translated, it is a tool of the responses server.
  ["chat", { model: "responses-1", web_search_options: {} }, "web_search_options"],
  ["chat", { service_tier: "flex" }, "service_tier"],
  ["messages", { container: "container_1" }, "container"],
  [
    "messages",
    { messages: said({ type: "document", source: { type: "file", file_id: "f" } }) },
    "messages.0.content.0.source.file_id",
  ],
  ["messages", { messages: said({ type: "container_upload", file_id: "f" }) }, "messages.0.content.0.file_id"],
  ["messages", { tools: [{ type: "web_search_20250305", name: "web_search" }] }, "tools"],
  ["messages", { tools: [{ type: "code_execution_20250825", name: "code_execution" }] }, "tools"],
  ["messages", { mcp_servers: [{ type: "url", url: "https://x", name: "x" }] }, "mcp_servers"],
  ["messages", { speed: "fast" }, "speed"],
];

for (const [protocol, fields, param] of CASES) {
  for (const stream of [false, true]) {
    test(`${protocol}${stream ? ", streamed" : ""}: ${JSON.stringify(fields).slice(0, 70)}`, async () => {
      const before = here.simulator.count;
      const reply = await ask(here, protocol, account.key, { ...fields, stream });
      const error = await errorOf(reply);
      assert.deepEqual([reply.status, error.cause], [400, "unsupported_parameter"]);
      assert.equal(protocol === "messages" ? error.message.split(": ")[0] : error.param, param);
      assert.equal(here.simulator.count, before, "nothing is sent to the upstream");
      await assertAtRest(here, account);
    });
  }
}

test("data that only looks like such a member is passed as data", async () => {
  const schema = { type: "object", properties: { file_id: { type: "string" }, container: { type: "string" } } };
  const call = { id: "c1", type: "function", function: { name: "f", arguments: '{"file_id":"x"}' } };
  const harmless: [Protocol, Fields][] = [
    ["chat", { tools: [{ type: "function", function: { name: "web_search", parameters: schema } }] }],
    [
      "chat",
      {
        messages: [
          { role: "user", content: "x" },
          { role: "assistant", tool_calls: [call] },
          { role: "tool", tool_call_id: "c1", content: "y" },
        ],
      },
    ],
    ["messages", { tools: [{ name: "web_search", input_schema: schema }] }],
    [
      "messages",
      {
        messages: [
          { role: "user", content: "x" },
          { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: { file_id: "x" } }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "y" }] },
        ],
      },
    ],
    ["responses", { tools: [{ type: "function", name: "web_search", parameters: schema }], service_tier: "auto" }],
    ["responses", { previous_response_id: null, conversation: null, background: false, prompt: null }],
    ["responses", { background_options: null }],
    ["chat", { messages: [{ role: "user", content: [{ type: "text", text: "x", uuid: "a" }], uuid: "a" }] }],
  ];
  for (const [protocol, fields] of harmless) {
    const reply = await ask(here, protocol, account.key, fields);
    assert.equal(reply.status, 200, await reply.text());
  }
});
