/**
 * docs/failure-model.md row C1: all connections to an upstream share one lookup of its name. With the addresses in one
 * order for all of them, they would all go to the first server of the name, for ten minutes under steady load.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedLookup } from "../../../src/values/program/shared-lookup.ts";
import { FakeClock } from "../dispatch/rig.ts";

const V4 = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map((address) => ({ address, family: 4 }));
const V6 = ["2001:db8::1", "2001:db8::2"].map((address) => ({ address, family: 6 }));

/** The answers to lookups, some of which wait for the first answer of the system. */
async function answers(addresses: typeof V4, count: number, all = true): Promise<unknown[]> {
  let answer = () => {};
  const lookup = sharedLookup(new FakeClock(), (_name, _options, give) => {
    answer = () => give(null, addresses);
  });
  const look = () =>
    new Promise((resolve) => lookup("name.test", { all }, (_error, address, family) => resolve(family ?? address)));
  const waiting = [look(), look()];
  answer();
  const given = await Promise.all(waiting);
  while (given.length < count) given.push(await look());
  return given.map((one) => (Array.isArray(one) ? one.map(({ address }) => address) : one));
}

test("connections begin with each address in turn, and have all others to try", async () => {
  assert.deepEqual(await answers(V4, 4), [
    ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
    ["192.0.2.2", "192.0.2.3", "192.0.2.1"],
    ["192.0.2.3", "192.0.2.1", "192.0.2.2"],
    ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
  ]);
});

test("the family that the system puts first stays first", async () => {
  assert.deepEqual(await answers([...V6, ...V4], 2), [
    ["2001:db8::1", "2001:db8::2", "192.0.2.1", "192.0.2.2", "192.0.2.3"],
    ["2001:db8::2", "2001:db8::1", "192.0.2.2", "192.0.2.3", "192.0.2.1"],
  ]);
  assert.deepEqual(await answers([...V6, ...V4], 3, false), [6, 6, 6]);
});
