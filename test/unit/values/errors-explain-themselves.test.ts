/**
 * ARCHITECTURE.md promise 11, and docs/failure-model.md rows 52, 58 and 77: rows of the error table give status, message and
 * headers, and repeat no raw input.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { answerOf, type Cause, ERROR_ROWS, type ErrorRow, isRefusal, refusal } from "../../../src/values/errors.ts";
import { quoted } from "../../../src/values/words/shown.ts";

const CAUSES = Object.keys(ERROR_ROWS) as Cause[];

test("control characters, bidirectional marks and lone surrogates are escaped, other text is kept", () => {
  assert.equal(quoted('plain é 日本 😀 "x"'), 'plain é 日本 😀 "x"');
  assert.equal(quoted("a\r\nb\0\x1b[31m\x7f\x85"), "a\\u000d\\u000ab\\u0000\\u001b[31m\\u007f\\u0085");
  assert.equal(quoted("\u202e\u2066\u200b\ufeff\u2028\u061c"), "\\u202e\\u2066\\u200b\\ufeff\\u2028\\u061c");
  assert.equal(quoted("\ud800x\udc00"), "\\ud800x\\udc00");
});

test("at most 128 characters are repeated, and half of a surrogate pair is escaped", () => {
  assert.equal(quoted("a".repeat(128)), "a".repeat(128));
  assert.equal(quoted("a".repeat(1e6)), `${"a".repeat(128)}…`);
  assert.equal(quoted(`${"a".repeat(127)}😀`), `${"a".repeat(127)}\\ud83d…`);
  assert.equal(quoted("abc", 2), "ab…");
});

test("every row has a cause that fits its status, a remedy, and complete sentences", () => {
  const byStatus: Record<number, string[]> = {
    401: ["authentication_error"],
    403: ["permission_error"],
    404: ["model_not_found", "not_found_error"],
    409: ["conflict_error"],
    429: ["rate_limit_error"],
    500: ["api_error"],
    503: ["overloaded_error"],
  };
  for (const cause of CAUSES) {
    const row: ErrorRow = ERROR_ROWS[cause];
    assert.ok((byStatus[row.status] ?? ["invalid_request_error"]).includes(row.identifier), cause);
    assert.match(row.remedy, /^[A-Z].*\.$/, cause);
    assert.match(row.summary, /^[A-Z].*[^.]$/, cause);
    assert.doesNotMatch(row.summary, /service temporarily unavailable/i, cause);
    if (row.status === 401) assert.equal(row.shouldRetry, false, cause);
    if (row.status === 503) assert.ok(row.retryAfterS !== undefined, cause);
  }
});

test("every 429 has a retry-after of whole seconds, at least 1", () => {
  for (const cause of CAUSES.filter((c) => ERROR_ROWS[c].status === 429)) {
    for (const retryAfterS of [undefined, 0, 0.2, 59.1]) {
      const answer = answerOf(refusal(cause, {}, { retryAfterS }));
      assert.ok(Number.isInteger(answer.retryAfterS) && (answer.retryAfterS as number) >= 1, cause);
      assert.equal(answer.shouldRetry, undefined, cause);
    }
  }
  assert.equal(answerOf(refusal("requests", {}, { retryAfterS: 1.2 })).retryAfterS, 2);
});

test("a wait above 60 seconds tells the SDKs not to retry", () => {
  assert.equal(answerOf(refusal("tokens", {}, { retryAfterS: 60 })).shouldRetry, undefined);
  const long = answerOf(refusal("tokens", {}, { retryAfterS: 61 }));
  assert.deepEqual([long.retryAfterS, long.shouldRetry], [61, false]);
});

test("only a 429 tells the SDKs not to retry because of its wait", () => {
  const answer = answerOf(refusal("upstream_unavailable", {}, { retryAfterS: 61 }), 503);
  assert.deepEqual([answer.status, answer.retryAfterS, answer.shouldRetry], [503, 61, true]);
});

test("a wait that is 60 seconds only after rounding is still retried, and 60.5 is not", () => {
  assert.equal(answerOf(refusal("tokens", {}, { retryAfterS: 59.5 })).shouldRetry, undefined);
  const answer = answerOf(refusal("tokens", {}, { retryAfterS: 60.5 }));
  assert.deepEqual([answer.retryAfterS, answer.shouldRetry], [61, false]);
});

test("an upstream failure is a retryable 403, or a 503 if the operator chose so", () => {
  for (const cause of ["upstream_unavailable", "upstream_timeout", "upstream_invalid"] as const) {
    const as403 = answerOf(refusal(cause));
    assert.deepEqual(
      [as403.status, as403.identifier, as403.shouldRetry, as403.origin],
      [403, "permission_error", true, "upstream"],
    );
    assert.match(as403.message, /forbidden.*contact the administrator/);
    const as503 = answerOf(refusal(cause), 503);
    assert.deepEqual(
      [as503.status, as503.identifier, as503.shouldRetry, as503.cause],
      [503, "overloaded_error", true, cause],
    );
    assert.ok((as503.retryAfterS ?? 0) >= 1);
    assert.doesNotMatch(as503.message, /forbidden|service temporarily unavailable/i);
  }
  for (const cause of ["upstream_forbidden", "group_mismatch", "insufficient_balance"] as const) {
    assert.equal(answerOf(refusal(cause), 503).status, 403, cause);
  }
});

test("the message contains detail, model and group in one line", () => {
  const { message, param } = answerOf(
    refusal("group_mismatch", {
      model: 'gpt-x "\n',
      group: "cards",
      detail: "The key's group is cards.",
      param: "model\0",
    }),
  );
  assert.equal(
    message,
    "Access to the upstream is forbidden, contact the administrator. The key's group is cards. " +
      'Model: "gpt-x "\\u000a". Group: "cards".',
  );
  assert.equal(param, "model\\u0000");
  assert.equal(answerOf(refusal("not_json")).param, null);
});

test("a refusal's own status, headers and upstream message take precedence", () => {
  const headers = { allow: "POST" };
  assert.deepEqual(answerOf(refusal("method_not_allowed", {}, { headers })).headers, headers);
  const rejected = answerOf(
    refusal("upstream_rejected", { model: "m" }, { status: 413, upstreamMessage: "prompt is too long" }),
  );
  assert.deepEqual([rejected.status, rejected.message, rejected.origin], [413, "prompt is too long", "upstream"]);
});

test("only a refusal is recognised as one", () => {
  assert.ok(isRefusal(refusal("internal")));
  for (const value of [undefined, null, 1, "refused", {}, { refused: "true" }]) assert.equal(isRefusal(value), false);
});
