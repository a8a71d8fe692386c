/**
 * Account tags are read from keys that anyone may send: names built to collide under a fixed hash are found as fast as others.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TransientMap } from "../../../src/values/collections/transient.ts";
import { BASE62 } from "../../../src/values/key.ts";

const COUNT = 3_844;
/** With the multiplier 31 all names of the first list are in one slot, and take 300 times as long. */
const TIMES_MAX = 20;

/** All pairs of digits before an end of eight, of which "Aa" and "BB" are equal if a digit counts 31 times the next. */
const alike = Array.from({ length: COUNT }, (_, i) => {
  const end = [1, 2, 4, 8].map((bit) => (i & bit ? "Aa" : "BB")).join("");
  return `${BASE62[Math.floor(i / 62)]}${BASE62[i % 62]}${end}`;
});
const others = Array.from({ length: COUNT }, (_, i) => `${Math.sin(i)}`.slice(-10));

function cpuUs(names: readonly string[]): number {
  const before = process.cpuUsage();
  const map = new TransientMap<string, number>();
  for (const name of names) map.set(name, map.size);
  for (const name of names) map.delete(name);
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

test("names built to collide in a map take as long as others", () => {
  cpuUs(others);
  const least = (names: readonly string[]) => Math.min(...[1, 2, 3, 4, 5].map(() => cpuUs(names)));
  const [made, usual] = [least(alike), least(others)];
  assert.ok(made < usual * TIMES_MAX, `${made} us for ${usual}`);
});
