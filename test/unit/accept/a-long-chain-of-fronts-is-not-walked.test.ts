/** docs/failure-model.md row 76: whoever writes a header of any length makes the gateway walk no more than a part of it. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test from "node:test";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { clientAddress } from "../../../src/accept/identity.ts";

/** As `src/accept/identity.ts` has it. */
const FORWARDED_CHARS_MAX = 2_048;

test("a chain beyond 2,048 characters names nobody, in one header or in several", () => {
  const addressOf = clientAddress(["10.0.0.0/8"]);
  const front = { remoteAddress: "10.0.0.1" } as Socket;
  const forwarded = (...chains: readonly string[]) =>
    addressOf(front, new RequestHeaders(chains.flatMap((chain) => ["X-Forwarded-For", chain])));
  const client = "203.0.113.7";
  const padded = (chars: number) => `${" ".repeat(chars - client.length)}${client}`;
  assert.equal(forwarded(client), client);
  assert.equal(forwarded(padded(FORWARDED_CHARS_MAX)), client);
  assert.equal(forwarded(padded(FORWARDED_CHARS_MAX + 1)), undefined);
  assert.equal(forwarded(padded(FORWARDED_CHARS_MAX - 10), "198.51.100.1"), undefined);
  assert.equal(forwarded(), undefined);
});
