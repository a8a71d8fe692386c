/**
 * docs/translation-rules.md rule 33: a search for tools, a client's own or its server's, answers with names
 * (`tool_reference`). On a messages route, the name of a hosted tool without a price is left out with the tool, and every other byte stays. Its server
 * refuses a name that leads nowhere.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { openExchange } from "../../../src/convert/bridge.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { CONTEXT } from "./request/translate.ts";
import { routeOf } from "./translate/rig.ts";

const OWN = '{"name":"own", "input_schema":{"type":"object","maximum":1e400}}';
const SEARCH = '{"type":"web_search_20250305","name":"web_search","defer_loading":true}';
const named = (name: string) => `{"type":"tool_reference", "tool_name":"${name}"}`;

/** A body with a call of `own` and its result. */
function body(tools: readonly string[], ...content: readonly string[]): string {
  const call = '{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"own","input":{"n":1.0}}]}';
  const result = `{"role":"user", "content":[{"type":"tool_result", "tool_use_id":"toolu_1","content":[${content}]},{"type":"text","text":"b"}]}`;
  return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},${call},${result}],"tools":[${tools}]}`;
}

function sent(asked: string): string {
  const read = readEnvelope("messages", Buffer.from(asked));
  assert.ok(!isRefusal(read));
  const route = { ...routeOf("messages"), upstreamModel: "m" };
  const permitted = { outputLimit: undefined, unpricedTools: ["web_search_20250305"], strict: false };
  const exchange = openExchange(
    { protocol: "messages", model: "m", stream: false, ...read },
    route,
    permitted,
    CONTEXT,
  );
  assert.ok(!isRefusal(exchange));
  assert.deepEqual(exchange.request.dropped, ["tools.web_search"]);
  return Buffer.from(exchange.request.body).toString();
}

test("only the name of the tool that is left out is missing", () => {
  assert.equal(sent(body([OWN, SEARCH], named("web_search"), named("own"))), body([OWN], named("own")));
});

test("a result with no other name stays, because its call needs one", () => {
  assert.equal(sent(body([OWN, SEARCH], named("web_search"))), body([OWN]));
});

test("the result of the server's own search loses the name, too", () => {
  const found = (tools: readonly string[], ...names: readonly string[]) => {
    const search = '{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_bm25","input":{"query":"w"}}';
    const result = `{"type":"tool_search_tool_result", "tool_use_id":"srvtoolu_1","content":{"type":"tool_search_tool_search_result", "tool_references":[${names}]}}`;
    const answer = `{"role":"assistant", "content":[${search},${result}]}`;
    return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},${answer},{"role":"user","content":"b"}],"tools":[${tools}]}`;
  };
  const bm25 = '{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}';
  const asked = found([OWN, bm25, SEARCH], named("own"), named("web_search"));
  assert.equal(sent(asked), found([OWN, bm25], named("own")));
  assert.equal(sent(found([OWN, bm25, SEARCH], named("web_search"))), found([OWN, bm25]));
});
