/**
 * docs/failure-model.md row D7: how much memory all bodies that are being read may take, and which requests are refused
 * above it.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { BodyShares, bodyRoomBytes } from "../../../src/overload/body-shares.ts";
import { newAccountTag } from "../../../src/values/key.ts";

function shares(roomBytes: number) {
  let refused = 0;
  const bodies = new BodyShares(
    () => roomBytes,
    () => void refused++,
  );
  return { bodies, refused: () => refused };
}

const anybody = () => newAccountTag(randomBytes);

/** How many bodies of this size an account may have at once. */
function most(bodies: BodyShares, bytes: number, tag = anybody()): number {
  for (let count = 0; ; count++) if (bodies.roomFor(tag).hold(bytes)) return count;
}

test("one account gets half of the memory, and each later one half of the rest", () => {
  const { bodies, refused } = shares(1_600);
  assert.deepEqual([most(bodies, 10), most(bodies, 10), most(bodies, 10)], [80, 40, 20]);
  assert.equal(refused(), 3);
});

test("an account with other bodies in progress is told to wait for them, with their size", () => {
  const { bodies } = shares(100);
  const tag = anybody();
  assert.equal(bodies.roomFor(tag).hold(41), undefined);
  const refused = bodies.roomFor(tag).hold(41);
  assert.equal(refused?.cause, "concurrency");
  assert.match(refused.facts.detail ?? "", /running requests use 41 bytes/);
});

test("an account without other bodies gets overloaded as the cause", () => {
  const { bodies } = shares(100);
  assert.equal(bodies.roomFor(anybody()).hold(50), undefined);
  assert.equal(bodies.roomFor(anybody()).hold(26)?.cause, "overloaded");
  assert.equal(bodies.roomFor(anybody()).hold(25), undefined);
});

test("a body that grows reserves its new size, and one that may not grow keeps what it has", () => {
  const { bodies } = shares(100);
  const tag = anybody();
  const [growing, other] = [bodies.roomFor(tag), bodies.roomFor(tag)];
  for (const bytes of [10, 20, 20, 30]) assert.equal(growing.hold(bytes), undefined);
  assert.equal(other.hold(21)?.cause, "concurrency");
  assert.equal(other.hold(20), undefined);
  assert.equal(growing.hold(31)?.cause, "concurrency", "the limit leaves room for the other account");
  other.free();
  assert.equal(growing.hold(50), undefined);
  assert.equal(growing.hold(51)?.cause, "overloaded", "the total limit is reached");
});

test("released memory is free again, once, and may be reserved again", () => {
  const { bodies } = shares(100);
  const tag = anybody();
  const [first, second] = [bodies.roomFor(tag), bodies.roomFor(tag)];
  assert.equal(first.hold(25), undefined);
  assert.equal(second.hold(25), undefined);
  for (let time = 0; time < 3; time++) first.free();
  assert.equal(bodies.roomFor(tag).hold(26)?.cause, "concurrency");
  assert.equal(first.hold(25), undefined);
  first.free();
  second.free();
  assert.equal(most(bodies, 1), 50);
});

test("the memory for bodies is a quarter of all, and at least enough for one account with one body of the largest size", () => {
  assert.equal(bodyRoomBytes(4_000, 10), 1_000);
  assert.equal(bodyRoomBytes(4_000, 600), 1_200);
  const { bodies } = shares(bodyRoomBytes(4_000, 600));
  assert.equal(bodies.roomFor(anybody()).hold(600), undefined);
});
