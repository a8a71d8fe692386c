/**
 * A large body is not only read in turns: what is then looked up in it, and what becomes of it after that, has turns of its own,
 * so that others wait for one of these steps and not for their sum.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readEnvelopeInTurns } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";

/** Turns of the event loop until it is read. */
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

test("between the last step of its reading, the look at it and what follows others are served", async () => {
  // Read in one step, so that no turn is given back by the reading itself.
  assert.ok((await turnsFor("a".repeat(70_000))) >= 3);
});

test("a body of the usual size is read at once", async () => {
  assert.equal(await turnsFor("a"), 0);
});
