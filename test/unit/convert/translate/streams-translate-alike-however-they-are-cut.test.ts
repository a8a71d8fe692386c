/**
 * ARCHITECTURE.md promise 7: each recorded stream, cut into single bytes, at every position and at random, gives the
 * same bytes. A cut affects only the bytes near it, so cuts that are PIECE_BYTES apart are tested in one run: each
 * position is cut in one of the runs, and their number does not grow with the stream. One recording of each direction
 * is also cut at each position alone.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { PROTOCOL_NAMES } from "../../../../src/values/protocol.ts";
import { convertStream, exchangeOf, routeOf } from "./rig.ts";
import { bodyOf, type Recording, recordings } from "./stream-cases.ts";

/** Longer than most events, so that most have one cut per run. */
const PIECE_BYTES = 256;
/** The number of random cuts of each recording, and of those that are also cut at single positions. */
const RANDOM_CUTS = 100;
const RANDOM_CUTS_OF_ONE = 1_000;
/** The simplest recording. Cuts in other kinds of events are tested with the pieces. */
const CUT_ALONE = "text";

const all = PROTOCOL_NAMES.flatMap((upstream) => recordings(upstream));

test("one recording of each direction between two protocols is cut at single positions", () => {
  const alone = all.filter(({ name }) => name === CUT_ALONE).map(({ upstream, client }) => `${upstream} ${client}`);
  assert.equal(new Set(alone).size, PROTOCOL_NAMES.length * (PROTOCOL_NAMES.length - 1));
});

for (const recording of all) {
  const { name, upstream, client, bytes } = recording;
  const isAlone = name === CUT_ALONE;
  test(`${name}, from ${upstream} to ${client}: the bytes are the same however the stream is cut`, () => {
    const expected = readFileSync(recording.expected, "utf8");
    assert.equal(outcome(recording, singleBytes(bytes)), expected, "single bytes");
    for (let first = 1; first <= Math.min(PIECE_BYTES, bytes.length - 1); first++) {
      assert.equal(outcome(recording, evenPieces(bytes, first)), expected, `cut at ${first} + n * ${PIECE_BYTES}`);
    }
    for (let at = 1; isAlone && at < bytes.length; at++) {
      assert.equal(outcome(recording, [bytes.subarray(0, at), bytes.subarray(at)]), expected, `cut at ${at}`);
    }
    for (let seed = 1; seed <= (isAlone ? RANDOM_CUTS_OF_ONE : RANDOM_CUTS); seed++) {
      assert.equal(outcome(recording, randomPieces(bytes, seed)), expected, `random cuts, seed ${seed}`);
    }
  });
}

function outcome({ client, upstream }: Recording, pieces: Iterable<Uint8Array>): string {
  return convertStream(exchangeOf(client, bodyOf(client), routeOf(upstream)), pieces).text;
}

function* singleBytes(bytes: Buffer): Iterable<Uint8Array> {
  for (let i = 0; i < bytes.length; i++) yield bytes.subarray(i, i + 1);
}

/** One piece of `first` bytes, then pieces of PIECE_BYTES. */
function* evenPieces(bytes: Buffer, first: number): Iterable<Uint8Array> {
  yield bytes.subarray(0, first);
  for (let i = first; i < bytes.length; i += PIECE_BYTES) yield bytes.subarray(i, i + PIECE_BYTES);
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
