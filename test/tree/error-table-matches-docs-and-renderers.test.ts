/** The error table, its documentation and the three renderers agree, in both directions. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { renderError } from "../../src/convert/error.ts";
import { answerOf, type Cause, ERROR_ROWS, type ErrorRow, refusal } from "../../src/values/errors.ts";
import { PROTOCOL_NAMES } from "../../src/values/protocol.ts";

const ROWS = Object.entries(ERROR_ROWS) as [Cause, ErrorRow][];
const documented = readFileSync("docs/errors.md", "utf8")
  .split("\n")
  .filter((line) => /^\| `[a-z_]+` \| \d{3} \|/.test(line))
  .map((line) =>
    line
      .slice(2, -2)
      .split(" | ")
      .map((cell) => cell.replace(/^`|`$/g, "")),
  );

const FUNDS: readonly string[] = [
  "no_entitlement",
  "quota_used",
  "insufficient_balance",
  "key_budget",
  "account_budget",
];

test("docs/errors.md lists exactly the rows of the table, in its order", () => {
  const inCode = ROWS.map(([cause, row]) => [cause, String(row.status), row.identifier, `${row.summary}.`, row.remedy]);
  assert.deepEqual(documented, inCode);
});

for (const protocol of PROTOCOL_NAMES) {
  test(`${protocol}: every row is rendered with identifier, cause, remedy, model, group and request id`, () => {
    for (const [cause, row] of ROWS) {
      const answer = answerOf(refusal(cause, { model: "M-1", group: "G-1", param: "field", detail: "Because." }));
      const body = JSON.parse(renderError(protocol, answer, "req_1"));
      assert.equal(body.error.cause, cause);
      assert.equal(body.error.remedy, row.remedy);
      for (const part of [row.summary, "M-1", "G-1", "Because."]) {
        assert.ok(body.error.message.includes(part), `${cause}: ${part}`);
      }
      if (protocol === "messages") {
        assert.equal(body.type, "error");
        assert.equal(body.request_id, "req_1");
        const funds = FUNDS.includes(cause);
        assert.equal(body.error.type, funds ? "billing_error" : row.identifier);
      } else {
        assert.equal(body.error.request_id, "req_1");
        assert.equal(body.error.param, "field");
        const server = row.identifier === "api_error" || row.identifier === "overloaded_error";
        assert.equal(body.error.type, server ? "server_error" : row.identifier);
        const code = [401, 404, 429].includes(row.status) ? row.identifier : cause;
        assert.equal(body.error.code, row.identifier === "overloaded_error" ? "server_is_overloaded" : code);
      }
    }
  });
}

test("rows on which clients match have the specified identifiers and words", () => {
  const status = (cause: Cause) => ERROR_ROWS[cause].status;
  for (const cause of ["unknown_model", "not_in_plan"] as const) {
    assert.equal(status(cause), 404);
    assert.equal(ERROR_ROWS[cause].identifier, "model_not_found");
    assert.match(ERROR_ROWS[cause].summary, /not supported by any configured account in this group/);
  }
  for (const cause of ["group_mismatch", "insufficient_balance", "upstream_unavailable"] as const) {
    assert.equal(status(cause), 403);
    assert.match(ERROR_ROWS[cause].summary, /upstream is forbidden, contact the administrator/);
  }
  for (const cause of ["no_entitlement", "quota_used", "insufficient_balance"] as const) {
    const { message } = answerOf(refusal(cause, { model: "M", group: "G", detail: "Because." }));
    const words = "Because. Access to the upstream is forbidden, contact the administrator.";
    assert.equal(
      message,
      `${words} Model: "M". Group: "G".`,
      "the cause comes first, the specification's words follow",
    );
  }
  for (const [cause, row] of ROWS) {
    if (row.status === 401) assert.equal(row.shouldRetry, false, cause);
    if (row.status === 503) assert.doesNotMatch(row.summary, /service temporarily unavailable/i, cause);
    const ours = !["unknown_model", "not_in_plan"].includes(cause);
    if (ours && row.status === 404) assert.doesNotMatch(row.summary, /model/i, cause);
  }
});

test("a 429 always has a whole retry-after, and one above 60 s says not to retry", () => {
  for (const [cause, row] of ROWS) {
    if (row.status !== 429) continue;
    assert.ok(Number.isInteger(answerOf(refusal(cause)).retryAfterS), cause);
    const long = answerOf(refusal(cause, {}, { retryAfterS: 61.2 }));
    assert.deepEqual([long.retryAfterS, long.shouldRetry], [62, false], cause);
  }
});
