/**
 * docs/translation-rules.md rule 47: some vendors answer 400 for a wrong key. The client has another key and cannot
 * help it, and the vendor's message shows a part of the operator's.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, jsonReply, refusalIn, replying, rig, route, upstream } from "./rig.ts";

async function answerTo(t: test.TestContext, body: unknown) {
  const base = await replying(t, jsonReply(JSON.stringify(body), "400 Bad Request"));
  const made = rig(t, [upstream("east", base)]);
  const refusal = refusalIn(await made.dispatcher.run(ask([route("east")], { stream: false })));
  return { refusal, warnings: made.warnings };
}

const XAI = "Incorrect API key provided: xa***56. You can obtain an API key from https://console.x.ai.";
const GEMINI = "API key not valid. Please pass a valid API key.";
const BODIES: Readonly<Record<string, unknown>> = {
  xAI: { code: "Client specified an invalid argument", error: XAI },
  Gemini: [{ error: { code: 400, message: GEMINI, status: "INVALID_ARGUMENT" } }],
  "a code": { error: { message: "no", type: "invalid_request_error", code: "invalid_api_key" } },
};

for (const [vendor, body] of Object.entries(BODIES)) {
  test(`${vendor}: the upstream is forbidden, and the operator is warned`, async (t) => {
    const { refusal, warnings } = await answerTo(t, body);
    assert.deepEqual([refusal.cause, refusal.upstreamMessage], ["upstream_forbidden", undefined]);
    assert.deepEqual(
      warnings.map(({ kind }) => kind),
      ["forbidden"],
    );
  });
}

test("a message that quotes such words is about the request", async (t) => {
  for (const message of [`Invalid value: '${GEMINI}'`, `messages.0.role: "${XAI}" is no role`]) {
    const { refusal, warnings } = await answerTo(t, { error: { message } });
    assert.deepEqual([refusal.cause, warnings.length], ["upstream_rejected", 0], message);
  }
});
