/** docs/failure-model.md row 76: whoever writes a header of any length makes the gateway walk no more than a part of it. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test from "node:test";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { clientAddress } from "../../../src/accept/identity.ts";

/** As `src/wire/address.ts` has it. */
const FORWARDED_CHARS_MAX = 2_048;
const FRONT = "10.0.0.1";

test("of a chain beyond 2,048 characters the end counts, where the front has written, in one header or in several", () => {
  const addressOf = clientAddress(["10.0.0.0/8"]);
  const front = { remoteAddress: FRONT } as Socket;
  const forwarded = (...chains: readonly string[]) =>
    addressOf(front, new RequestHeaders(chains.flatMap((chain) => ["X-Forwarded-For", chain])));
  const client = "203.0.113.7";
  const claimed = Array.from({ length: 1_000 }, () => "198.51.100.1").join(", ");
  assert.equal(forwarded(client), client);
  assert.equal(forwarded(`${claimed}, ${client}`), client);
  assert.equal(forwarded(claimed, client), client);
  assert.equal(forwarded(claimed, `${client}, ${FRONT}`), client);
  assert.equal(forwarded(), undefined);
});

test("what stands before the last 2,048 characters is not walked, nor the entry that they cut", () => {
  const addressOf = clientAddress(["10.0.0.0/8"]);
  const front = { remoteAddress: FRONT } as Socket;
  const forwarded = (chain: string) => addressOf(front, new RequestHeaders(["X-Forwarded-For", chain]));
  const client = "203.0.113.7";
  /** The client's own entry and, behind it, fronts with so many characters. */
  const before = (chars: number) => `${client},${FRONT.padStart(chars)}`;
  assert.equal(forwarded(before(FORWARDED_CHARS_MAX - client.length - 1)), client);
  assert.equal(forwarded(before(FORWARDED_CHARS_MAX - client.length)), FRONT);
  assert.equal(forwarded(before(FORWARDED_CHARS_MAX)), FRONT);
  assert.equal(forwarded(before(FORWARDED_CHARS_MAX + 1)), undefined, "one entry alone is longer");
});
