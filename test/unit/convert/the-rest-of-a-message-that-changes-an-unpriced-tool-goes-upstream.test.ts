/**
 * docs/translation-rules.md rule 33: on a messages route, the changes of tools that refer to a hosted tool without a price
 * are left out with it. Everything else in their messages goes upstream.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { openExchange } from "../../../src/convert/bridge.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { CONTEXT } from "./request/translate.ts";
import { routeOf } from "./translate/rig.ts";

const OWN = { name: "github", input_schema: { type: "object" } };
const HI = { role: "user", content: "hi" };
const effort = { effort: "low" };
const removal = (tool: object) => ({ type: "tool_removal", tool });
const tool = removal({ type: "tool_reference", name: "github" });
const ofServer = removal({ type: "mcp_tool_reference", server_name: "github", name: "search" });
const server = removal({ type: "mcp_toolset_reference", server_name: "github" });

/** The tools and messages that go upstream if hosted tools of this type have no price. */
function sent(unpriced: string, hosted: object, messages: readonly object[]): unknown {
  const asked = { model: "m", max_tokens: 9, tools: [hosted, OWN], messages };
  const read = readEnvelope("messages", Buffer.from(JSON.stringify(asked)));
  assert.ok(!isRefusal(read));
  const route = { ...routeOf("messages"), upstreamModel: "m" };
  const permitted = { outputLimit: undefined, unpricedTools: [unpriced], strict: false };
  const exchange = openExchange(
    { protocol: "messages", model: "m", stream: false, ...read },
    route,
    permitted,
    CONTEXT,
  );
  assert.ok(!isRefusal(exchange));
  const body = JSON.parse(Buffer.from(exchange.request.body).toString());
  assert.deepEqual(body.tools, [OWN]);
  return body.messages;
}

test("a change of the client's own tool stays if an MCP server has the same name", () => {
  const toolset = { type: "mcp_toolset", mcp_server_name: "github" };
  const messages = [HI, { role: "system", content: [server, tool, ofServer] }];
  assert.deepEqual(sent("mcp_toolset", toolset, messages), [HI, { role: "system", content: [tool] }]);
});

test("an effort stays if nothing else is left of its message", () => {
  const search = { type: "web_search_20250305", name: "search" };
  const change = removal({ type: "tool_reference", name: "search" });
  const messages = [
    HI,
    { role: "system", content: [change], output_config: effort },
    { role: "system", content: [change], output_config: {} },
    { role: "system", content: [change] },
  ];
  assert.deepEqual(sent(search.type, search, messages), [HI, { role: "system", output_config: effort }]);
});
