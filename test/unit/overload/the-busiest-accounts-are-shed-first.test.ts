/** ARCHITECTURE.md promise 10, computed from numbers alone: which requests are refused at which pressure. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { InFlight, isHeavy, shedAt } from "../../../src/overload/overload.ts";
import { hashKey, newAccountTag } from "../../../src/values/key.ts";

const ONE_HEAVY = { total: 310, accounts: 6, most: 300 };
const ALL_ALIKE = { total: 300, accounts: 3, most: 100 };

const CASES = [
  ["below the first threshold every request passes", "headers", 0.79, 300, ONE_HEAVY, undefined],
  ["the heavy account is refused first", "headers", 0.8, 300, ONE_HEAVY, "concurrency"],
  ["the other accounts pass until the process is full", "headers", 0.99, 2, ONE_HEAVY, undefined],
  ["a full process refuses the other accounts, too", "headers", 1, 2, ONE_HEAVY, "overloaded"],
  ["even then the heavy account gets concurrency as the cause", "headers", 1, 300, ONE_HEAVY, "concurrency"],
  ["if no account is heavy, none is refused at the first threshold", "headers", 0.9, 100, ALL_ALIKE, undefined],
  [
    "if no account is heavy, all are refused a little before the process is full",
    "headers",
    0.95,
    100,
    ALL_ALIKE,
    "overloaded",
  ],
  ["a key without running requests belongs to no heavy account", "headers", 0.95, 0, ALL_ALIKE, "overloaded"],
  ["a request whose body has been read passes longer", "body", 0.84, 300, ONE_HEAVY, undefined],
  ["a body of a heavy account is refused at its own threshold", "body", 0.85, 300, ONE_HEAVY, "concurrency"],
  ["an admitted request passes longest", "upstream", 0.89, 300, ONE_HEAVY, undefined],
  [
    "an admitted request of a heavy account is refused at the last threshold",
    "upstream",
    0.9,
    300,
    ONE_HEAVY,
    "concurrency",
  ],
  ["an admitted request of another account gets the last free slot", "upstream", 0.99, 1, ALL_ALIKE, undefined],
  ["an admitted request is refused when there is no slot left", "upstream", 1, 1, ALL_ALIKE, "overloaded"],
] as const;

for (const [name, point, pressure, own, census, expected] of CASES) {
  test(name, () => assert.equal(shedAt(point, pressure, own, census), expected));
}

test("an account is heavy with more than half of all requests, or twice an equal share, but never with a handful", () => {
  assert.equal(isHeavy(7, { total: 7, accounts: 1, most: 7 }), false);
  assert.equal(isHeavy(8, { total: 8, accounts: 1, most: 8 }), true);
  assert.equal(isHeavy(50, { total: 100, accounts: 2, most: 50 }), false);
  assert.equal(isHeavy(51, { total: 100, accounts: 2, most: 51 }), true);
  assert.equal(isHeavy(30, { total: 120, accounts: 10, most: 30 }), true);
  assert.equal(isHeavy(20, { total: 120, accounts: 10, most: 30 }), false);
});

test("requests in flight are counted by account, and a key is known only while its requests run", () => {
  const counts = new InFlight();
  const [busy, calm] = [newAccountTag(randomBytes), newAccountTag(randomBytes)];
  const [key, other, third] = [hashKey("a"), hashKey("b"), hashKey("c")];
  assert.deepEqual(counts.census, { total: 0, accounts: 0, most: 0 });
  const leaves = [counts.enter(busy, key), counts.enter(busy, key), counts.enter(busy, other)];
  const leaveCalm = counts.enter(calm, third);
  assert.deepEqual(counts.census, { total: 4, accounts: 2, most: 3 });
  assert.deepEqual([counts.ofKey(key), counts.ofKey(third), counts.ofKey(hashKey("forged"))], [3, 1, 0]);
  leaves[2]?.();
  leaves[2]?.();
  assert.deepEqual([counts.of(busy), counts.ofKey(other)], [2, 0]);
  leaveCalm();
  assert.deepEqual(counts.census, { total: 2, accounts: 1, most: 2 });
  for (const leave of leaves) leave();
  assert.deepEqual(counts.census, { total: 0, accounts: 0, most: 0 });
});

test("the highest count stays as it is when one of two equally busy accounts gets less busy", () => {
  const counts = new InFlight();
  const enter = (name: string, tag = newAccountTag(randomBytes)) =>
    [1, 2, 3].map(() => counts.enter(tag, hashKey(name)));
  const [first, second] = [enter("a"), enter("b")];
  first[0]?.();
  assert.deepEqual(counts.census, { total: 5, accounts: 2, most: 3 });
  second[0]?.();
  assert.deepEqual(counts.census, { total: 4, accounts: 2, most: 2 });
});
