/**
 * Readers of large bodies share the event loop: each turn of the loop runs one of them, in the order in which they asked, so
 * that requests are served between any two of them, however many there are.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Turns } from "../../../src/accept/turns.ts";

test("of four readers that ask at once, one runs in each turn of the event loop", async () => {
  const turns = new Turns();
  const ran: number[] = [];
  for (let reader = 1; reader <= 4; reader++) void turns.next().then(() => ran.push(reader));
  for (let turn = 1; turn <= 4; turn++) {
    await nextTurn();
    assert.equal(ran.length, turn);
  }
  assert.deepEqual(ran, [1, 2, 3, 4]);
});
