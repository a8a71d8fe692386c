/**
 * ARCHITECTURE.md promise 7: each recorded stream, cut into single bytes, into two at every place, and a thousand times
 * at random, gives the very same bytes.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { PROTOCOL_NAMES } from "../../../../src/values/protocol.ts";
import { exchangeOf, routeOf, tell } from "./rig.ts";
import { bodyOf, type Recording, recordings } from "./stream-cases.ts";

/** Random cuts of each recording. */
const RANDOM_CUTS = 1_000;

const all = PROTOCOL_NAMES.flatMap((upstream) => recordings(upstream));

for (const recording of all) {
  const { name, upstream, client, bytes } = recording;
  test(`${name}, from ${upstream} to ${client}`, () => {
    const expected = readFileSync(recording.expected, "utf8");
    assert.equal(outcome(recording, singleBytes(bytes)), expected, "single bytes");
    for (let at = 1; at < bytes.length; at++) {
      assert.equal(outcome(recording, [bytes.subarray(0, at), bytes.subarray(at)]), expected, `cut at ${at}`);
    }
    for (let seed = 1; seed <= RANDOM_CUTS; seed++) {
      assert.equal(outcome(recording, randomPieces(bytes, seed)), expected, `random cuts, seed ${seed}`);
    }
  });
}

function outcome({ client, upstream }: Recording, pieces: Iterable<Uint8Array>): string {
  return tell(exchangeOf(client, bodyOf(client), routeOf(upstream)), pieces).text;
}

function* singleBytes(bytes: Buffer): Iterable<Uint8Array> {
  for (let i = 0; i < bytes.length; i++) yield bytes.subarray(i, i + 1);
}

/** Pieces of 0 to 99 bytes; the same for the same seed. */
function* randomPieces(bytes: Buffer, seed: number): Iterable<Uint8Array> {
  let state = seed;
  for (let i = 0; i < bytes.length; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const next = i + ((state >>> 16) % 100);
    yield bytes.subarray(i, next);
    i = next;
  }
}
