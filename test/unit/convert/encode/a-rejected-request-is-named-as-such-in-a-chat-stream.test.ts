/** docs/errors.md, *When a stream fails*: a chat stream that has begun can say only by its type who is at fault. */
import assert from "node:assert/strict";
import test from "node:test";
import { renderStreamFailure } from "../../../../src/convert/chat/error.ts";
import { answerOf, type Cause, refusal } from "../../../../src/values/errors.ts";

const CASES: readonly (readonly [cause: Cause, code: string, type: string])[] = [
  ["upstream_rejected", "context_length_exceeded", "invalid_request_error"],
  ["upstream_rejected", "invalid_prompt", "invalid_request_error"],
  ["upstream_rate_limit", "rate_limit_exceeded", "rate_limit_error"],
  ["upstream_unavailable", "server_is_overloaded", "server_error"],
  ["upstream_invalid", "upstream_stream_truncated", "server_error"],
];

for (const [cause, code, type] of CASES) {
  test(`${cause} with the code ${code} has the type ${type}`, () => {
    const { error } = JSON.parse(renderStreamFailure(answerOf(refusal(cause)), code, "req_1"));
    assert.deepEqual([error.type, error.code, error.cause], [type, code, cause]);
  });
}
