/** docs/failure-model.md row 76: only the end of a forwarding header is walked, however long the header is. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test from "node:test";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { clientAddress } from "../../../src/accept/identity.ts";

/** As in `src/wire/address.ts`. */
const FORWARDED_CHARS_MAX = 2_048;
const FRONT = "10.0.0.1";

test("of a chain above 2,048 characters the end counts, which the front wrote, in one header or in several", () => {
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

test("entries before the last 2,048 characters are not walked, and neither is the entry at the cut", () => {
  const addressOf = clientAddress(["10.0.0.0/8"]);
  const front = { remoteAddress: FRONT } as Socket;
  const forwarded = (chain: string) => addressOf(front, new RequestHeaders(["X-Forwarded-For", chain]));
  const client = "203.0.113.7";
  /** The client's own entry, followed by this many characters of fronts. */
  const before = (chars: number) => `${client},${FRONT.padStart(chars)}`;
  assert.equal(forwarded(before(FORWARDED_CHARS_MAX - client.length - 1)), client);
  assert.equal(forwarded(before(FORWARDED_CHARS_MAX - client.length)), FRONT);
  assert.equal(forwarded(before(FORWARDED_CHARS_MAX)), FRONT);
  assert.equal(forwarded(before(FORWARDED_CHARS_MAX + 1)), undefined, "one entry alone is longer");
});
