/** Each field that is for the next hop alone (RFC 9110 section 7.6.1, RFC 2616 section 13.5.1) is known as one. */
import assert from "node:assert/strict";
import test from "node:test";
import { hopByHopNames } from "../../../src/wire/header.ts";

const FIELDS = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

for (const field of FIELDS) {
  test(`${field} ends at the next hop, whether Connection names it or not`, () => {
    assert.ok(hopByHopNames(undefined).has(field));
    assert.ok(hopByHopNames("close, x-other").has(field));
  });
}
