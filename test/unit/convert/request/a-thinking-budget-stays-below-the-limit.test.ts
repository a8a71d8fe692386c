/**
 * If admission lowers the output limit, the thinking budget is lowered to stay below it, or switched off below its
 * minimum.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../../src/accept/envelope.ts";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { CONTEXT, routeTo } from "./translate.ts";

const BODY = {
  model: "m",
  max_tokens: 9_000,
  thinking: { type: "enabled", budget_tokens: 2_000 },
  messages: [{ role: "user", content: "hi" }],
};

for (const [outputLimit, thinking] of [
  [undefined, BODY.thinking],
  [2_001, BODY.thinking],
  [2_000, { type: "enabled", budget_tokens: 1_999 }],
  [1_025, { type: "enabled", budget_tokens: 1_024 }],
  // Messages servers take no budget below 1,024.
  [1_024, { type: "disabled" }],
  [1, { type: "disabled" }],
] as const) {
  test(`a limit of ${outputLimit ?? "the client's own"} keeps the budget below it, or switches thinking off`, () => {
    const read = readEnvelope("messages", Buffer.from(JSON.stringify(BODY)));
    assert.ok(!isRefusal(read));
    const request = { protocol: "messages", model: "m", stream: false, ...read } as const;
    const opened = openExchange(request, routeTo("messages"), { outputLimit, strict: false }, CONTEXT);
    assert.ok(!isRefusal(opened));
    const sent = JSON.parse(Buffer.from(opened.request.body).toString());
    assert.deepEqual([sent.max_tokens, sent.thinking], [outputLimit ?? 9_000, thinking]);
  });
}
