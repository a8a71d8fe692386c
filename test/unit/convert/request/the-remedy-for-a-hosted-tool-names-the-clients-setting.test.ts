/** docs/errors.md: a client may offer a hosted tool by itself, so its user must read where it is switched off. */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { answerOf, isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { OWN } from "../references/rig.ts";
import { clientRequest } from "../translate/rig.ts";
import { type Body, routeTo } from "./translate.ts";

const TURN = [{ role: "user", content: "hi" }];
const SETTING = /web_search = "disabled" in Codex, WebSearch under permissions\.deny in Claude Code/;

function remedyOf(client: Protocol, upstream: Protocol, body: Body): string {
  const request = clientRequest(client, { model: "m", ...body });
  const exchange = openExchange(request, routeTo(upstream), { outputLimit: undefined, strict: false }, OWN);
  assert.ok(isRefusal(exchange));
  return answerOf(exchange).remedy;
}

test("the only tool is run by another vendor's servers", () => {
  const search = { max_tokens: 50, messages: TURN, tools: [{ type: "web_search_20250305", name: "web_search" }] };
  for (const upstream of ["chat", "responses"] as const) assert.match(remedyOf("messages", upstream, search), SETTING);
  const codex = { input: "hi", store: false, tools: [{ type: "web_search" }] };
  for (const upstream of ["chat", "messages"] as const) assert.match(remedyOf("responses", upstream, codex), SETTING);
});

test("a member that only a user writes has the usual remedy", () => {
  const asked = { messages: TURN, web_search_options: {} };
  assert.equal(remedyOf("chat", "messages", asked), "Remove the parameter.");
});
