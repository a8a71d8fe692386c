/**
 * ARCHITECTURE.md promises 10 and 14: a value of another type where a word or an id is expected is passed on or
 * refused, and never crashes.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { openExchange } from "../../../src/convert/bridge.ts";
import type { RouteFacts } from "../../../src/convert/exchange.ts";
import { isRefusal, type Refusal } from "../../../src/values/errors.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { CONTEXT } from "./request/translate.ts";
import { routeOf } from "./translate/rig.ts";

/** The body that the upstream is sent, or the refusal. */
function sent(protocol: Protocol, members: object, route: RouteFacts): string | Refusal {
  const read = readEnvelope(protocol, Buffer.from(JSON.stringify({ model: "m", ...members })));
  assert.ok(!isRefusal(read));
  const asked = { protocol, model: "m", stream: false, ...read };
  const exchange = openExchange(asked, route, { outputLimit: undefined, strict: false }, CONTEXT);
  return isRefusal(exchange) ? exchange : Buffer.from(exchange.request.body).toString();
}

test("a thinking type that is not a string is passed on and does not count as switched off", () => {
  const route = { ...routeOf("messages", { thinkingOff: "reject" }), upstreamModel: "m" };
  const members = { max_tokens: 9, messages: [{ role: "user", content: "hi" }], thinking: { type: { toString: 1 } } };
  assert.match(sent("messages", members, route) as string, /"thinking":\{"type":\{"toString":1\}\}/);
});

test("an id that is not a string is refused for a stateful upstream and passed on for any other", () => {
  for (const [item, param] of [
    [{ type: "reasoning", id: ["rs_1"], summary: [] }, "input[0].id"],
    [{ type: "mcp_approval_response", approval_request_id: ["mcpr_1"], approve: true }, "input[0].approval_request_id"],
  ] as const) {
    const members = { input: [item], store: false };
    const plain = { ...routeOf("responses"), upstreamModel: "m" };
    const refused = sent("responses", members, { ...plain, stateful: true });
    assert.deepEqual(typeof refused === "object" && [refused.cause, refused.facts.param], ["wrong_type", param]);
    assert.ok(JSON.stringify(sent("responses", members, plain)).includes("_1"));
  }
});

test("any value of chat's store except null goes upstream as false", () => {
  const route = { ...routeOf("chat"), upstreamModel: "m" };
  const of = (store: unknown) => sent("chat", { messages: [{ role: "user", content: "hi" }], store }, route) as string;
  for (const store of [true, 1, "true", {}]) assert.match(of(store), /"store":false\}$/);
  assert.match(of(null), /"store":null\}$/);
});
