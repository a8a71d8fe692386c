/**
 * Requests that count tokens or read the catalog are free but limited: a key may send 300 per minute, and at least 25
 * at once.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { SIDE_COUNTS_PER_MINUTE } from "../../../../src/endpoints/rate.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { bodyOf } from "../whole/asking.ts";
import { HandClock } from "../whole/hand-clock.ts";

/** As many as Claude Code asks for at once to show its context. */
const AT_ONCE = 25;

function asker(here: GatewayHere, { key }: TestAccount) {
  const ask = (path: string, body?: object, more: Record<string, string> = {}) =>
    fetch(here.url + path, {
      method: body ? "POST" : "GET",
      headers: { "x-api-key": key, "content-type": "application/json", ...more },
      ...(body && { body: JSON.stringify(body) }),
    });
  return {
    count: () => ask("/v1/messages/count_tokens", bodyOf("messages", { max_tokens: undefined })),
    inputTokens: () => ask("/v1/responses/input_tokens", { model: "responses-1", input: "hello" }),
    models: () => ask("/v1/models"),
    model: () => ask("/v1/models/messages-1", undefined, { "anthropic-version": "2023-06-01" }),
    stored: () => ask("/v1/responses/resp_1"),
    usage: () => ask("/v1/usage"),
    complete: () => ask("/v1/messages", bodyOf("messages")),
  };
}

test("25 concurrent counts are answered repeatedly, and above 300 per minute each gets 429 in its protocol's form", async (t) => {
  const clock = new HandClock();
  const here = await startGatewayHere({ clock });
  t.after(() => here.close());
  const busy = asker(here, await here.account());
  const other = asker(here, await here.account());
  for (let left = SIDE_COUNTS_PER_MINUTE; left > 0; left -= AT_ONCE) {
    const replies = await Promise.all(Array.from({ length: AT_ONCE }, busy.count));
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200]);
    await Promise.all(replies.map((reply) => reply.text()));
  }
  const refused = await busy.count();
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "1"]);
  const body = (await refused.json()) as { type: string; error: Record<string, string>; request_id: string };
  assert.deepEqual([body.type, body.error.type, body.error.cause], ["error", "rate_limit_error", "requests"]);
  assert.match(body.error.message ?? "", /300 of these requests per minute/);
  assert.equal(body.request_id, refused.headers.get("request-id"));

  const chat = await busy.inputTokens();
  assert.equal(chat.status, 429);
  assert.equal(((await chat.json()) as { error: { code: string } }).error.code, "rate_limit_error");
  for (const same of [busy.models, busy.model, busy.stored]) assert.equal((await same()).status, 429);
  for (const apart of [busy.usage, busy.complete, other.count, other.models]) {
    assert.equal((await apart()).status, 200);
  }
  clock.advance(1_000);
  const later = await Promise.all(Array.from({ length: 6 }, busy.count));
  assert.deepEqual(
    later.map(({ status }) => status).sort(),
    [200, 200, 200, 200, 200, 429],
    "five more are allowed after a second",
  );
});
