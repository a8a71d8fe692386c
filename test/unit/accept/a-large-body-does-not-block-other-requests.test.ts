/**
 * A large body is read in steps, one in each turn of the event loop. Scanning it and what follows take turns of their
 * own, so that other requests wait for one step and not for all of them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readEnvelopeInTurns } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";

/** Turns of the event loop until the body is read. */
async function turnsFor(content: string): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const body = Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content }] }));
  const read = await readEnvelopeInTurns("chat", body);
  isOver = true;
  assert.ok(!isRefusal(read));
  return turns;
}

test("other requests are served between reading a large body, scanning it and what follows", async () => {
  // Small enough to be read in one step, so that reading alone yields no turn.
  assert.ok((await turnsFor("a".repeat(70_000))) >= 3);
});

test("a body of the usual size is read without yielding a turn", async () => {
  assert.equal(await turnsFor("a"), 0);
});
