/**
 * docs/translation-rules.md rule 21: what hosted tools have done is left out and named once; what only the vendor's own
 * servers can go on with is refused at its item.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { routeTo, translate } from "./translate.ts";

const HI = { role: "user", content: "hi" };

const LEFT_OUT = [
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "computer_call",
  "computer_call_output",
  "mcp_call",
  "mcp_list_tools",
];

for (const type of LEFT_OUT) {
  test(`a responses item ${type} is left out`, () => {
    const encoded = translate("responses", { input: [HI, { type, id: "i_1" }, HI] }, routeTo("chat"));
    assert.ok(!isRefusal(encoded));
    assert.deepEqual(encoded.dropped, ["input.hosted_call"]);
    assert.deepEqual(JSON.parse(new TextDecoder().decode(encoded.body)).messages, [HI, HI]);
  });
}

const REFUSED = [
  "compaction",
  "compaction_trigger",
  "item_reference",
  "program",
  "program_output",
  "agent_message",
  "multi_agent_call",
  "multi_agent_call_output",
  "mcp_approval_request",
  "mcp_approval_response",
];

for (const type of REFUSED) {
  test(`a responses item ${type} is refused, and not as an unknown one`, () => {
    const refusal = translate("responses", { input: [HI, { type, id: "i_1" }] }, routeTo("chat"));
    assert.ok(isRefusal(refusal));
    assert.notEqual(refusal.cause, "wrong_type");
    assert.match(String(refusal.facts.param), /^input\[1\]/);
  });
}

const BLOCKS = ["server_tool_use", "mcp_tool_use", "web_search_tool_result", "mcp_tool_result"];

for (const type of BLOCKS) {
  test(`a messages block ${type} is left out`, () => {
    const said = [
      { type, id: "b_1", name: "n", input: {} },
      { type: "text", text: "a" },
    ];
    const body = { max_tokens: 9, messages: [HI, { role: "assistant", content: said }, HI] };
    const encoded = translate("messages", body, routeTo("chat"));
    assert.ok(!isRefusal(encoded));
    assert.deepEqual(encoded.dropped, ["server_tool_use"]);
    const { messages } = JSON.parse(new TextDecoder().decode(encoded.body));
    assert.deepEqual(messages, [HI, { role: "assistant", content: "a" }, HI]);
  });
}
