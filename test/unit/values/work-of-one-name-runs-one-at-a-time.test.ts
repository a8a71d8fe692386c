/** Redemptions of an account, and reads of its ledger, run one after another. Those of other accounts do not wait. */
import assert from "node:assert/strict";
import test from "node:test";
import { KeyedQueue } from "../../../src/values/collections/keyed-queue.ts";

/** Work that begins when its turn comes and ends when the test says so. */
function work(begun: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const run = () => {
    begun.push(name);
    return promise;
  };
  return { run, end: () => resolve(name), fail: () => reject(new Error(name)) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("work that arrives while other work waits begins after all of it", async () => {
  const queue = new KeyedQueue<string>();
  const begun: string[] = [];
  const [first, second, third] = [work(begun, "1"), work(begun, "2"), work(begun, "3")];
  const results = [queue.of("a", first.run), queue.of("a", second.run)];
  first.end();
  await settled();
  // The second is running, and the first is over.
  results.push(queue.of("a", third.run));
  await settled();
  assert.deepEqual(begun, ["1", "2"]);
  second.end();
  await settled();
  assert.deepEqual(begun, ["1", "2", "3"]);
  third.end();
  assert.deepEqual(await Promise.all(results), ["1", "2", "3"]);
});

test("work that fails does not fail the work after it", async () => {
  const queue = new KeyedQueue<string>();
  const begun: string[] = [];
  const [first, second] = [work(begun, "1"), work(begun, "2")];
  const failed = assert.rejects(queue.of("a", first.run), /1/);
  const next = queue.of("a", second.run);
  first.fail();
  second.end();
  await failed;
  assert.equal(await next, "2");
});

test("work of another name, or of none, does not wait", async () => {
  const queue = new KeyedQueue<string>();
  const begun: string[] = [];
  const all = ["a", "b", "c", "d"].map((name) => work(begun, name));
  const names = ["x", "y", undefined, undefined];
  const results = all.map(({ run }, at) => queue.of(names[at], run));
  await settled();
  assert.deepEqual(begun.toSorted(), ["a", "b", "c", "d"]);
  for (const { end } of all) end();
  await Promise.all(results);
});
