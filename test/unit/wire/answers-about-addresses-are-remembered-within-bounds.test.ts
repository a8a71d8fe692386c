/** Whoever makes addresses up cannot fill the memory: a thousand answers are remembered, and no long text at all. */
import assert from "node:assert/strict";
import test from "node:test";
import { remembered } from "../../../src/wire/address.ts";

/** An answer for each address, and how often each was asked for. */
function counting() {
  const asked: string[] = [];
  const answer = remembered((address) => {
    asked.push(address);
    return address.length;
  });
  return { asked, answer };
}

test("an address is asked for once, until a thousand others came", () => {
  const { asked, answer } = counting();
  answer("192.0.2.1");
  for (let i = 0; i < 999; i++) answer(`10.0.${i >> 8}.${i & 255}`);
  assert.equal(answer("192.0.2.1"), 9);
  assert.equal(asked.filter((address) => address === "192.0.2.1").length, 1);
  answer("203.0.113.1");
  answer("192.0.2.1");
  assert.equal(asked.filter((address) => address === "192.0.2.1").length, 2);
});

test("a text longer than any address is answered and not remembered", () => {
  const { asked, answer } = counting();
  const long = "f".repeat(65);
  assert.deepEqual([answer(long), answer(long)], [65, 65]);
  assert.deepEqual(asked, [long, long]);
});
