/**
 * A peer that looks like a front and is not in `trust_proxy` is reported once. In a network whose clients all have private
 * addresses and send X-Forwarded-For, only the first four are reported: the log and the memory of the gateway have a limit.
 */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test from "node:test";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { clientAddress } from "../../../src/accept/identity.ts";

test("of many peers that look like fronts the first four are reported", () => {
  const reported: string[] = [];
  const addressOf = clientAddress([], (peer) => reported.push(peer));
  const headers = new RequestHeaders(["X-Forwarded-For", "9.9.9.9"]);
  for (let i = 1; i <= 20; i++) {
    const remoteAddress = `10.0.0.${i}`;
    assert.equal(addressOf({ remoteAddress } as Socket, headers), remoteAddress);
  }
  assert.deepEqual(reported, ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]);
});
