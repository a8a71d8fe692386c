/**
 * A connection to the unspecified address of IPv4 or IPv6 goes to loopback. A site that is written that way on the
 * gateway's own port would make the gateway forward visitors to itself, or show them the admin API.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { pointsTo } from "../../../../src/config/compile/addresses.ts";

const listener = (host: string, port = 8787) => ({ kind: "tcp", host, port }) as const;

test("a URL with an unspecified address leads to the listener on the loopback address of its family", () => {
  assert.equal(pointsTo("http://0.0.0.0:8787", listener("127.0.0.1")), true);
  assert.equal(pointsTo("http://[::]:8787", listener("::1")), true);
  for (const url of ["http://0.0.0.0:8787", "http://[::]:8787"]) {
    assert.equal(pointsTo(url, listener("localhost")), true);
    assert.equal(pointsTo(url, listener("::")), true, "all addresses");
    assert.equal(pointsTo(url, listener("localhost", 8788)), false, "another port");
  }
  assert.equal(pointsTo("http://[::]:8787", listener("127.0.0.1")), false, "of the other family");
});
