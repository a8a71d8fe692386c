/**
 * A header that `Connection` names is for this hop only (RFC 9110 section 7.6.1). CGI servers read `_` in a name as `-`, so
 * the other spelling of such a header does not reach the site either.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { RequestHeaders } from "../../../../src/accept/headers.ts";
import { requestHead } from "../../../../src/accept/site/head.ts";

test("a header that the connection names does not reach the site, with hyphens or with underscores", () => {
  const raw = [
    ...["Host", "site.test", "Connection", "close, X-Internal-User", "X-Internal-User", "1", "X_Internal_User", "2"],
    ...["X-Internal_User", "3", "X_Kept", "4"],
  ];
  const visit = { method: "GET", target: "/", headers: new RequestHeaders(raw), clientAddress: undefined };
  const head = requestHead({ ...visit, awaitsContinue: false }, "site.test", false);
  assert.deepEqual(head, ["host", "site.test", "x_kept", "4", "connection", "close"]);
});
