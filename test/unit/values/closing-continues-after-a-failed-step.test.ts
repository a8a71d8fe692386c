import assert from "node:assert/strict";
import test from "node:test";
import { closeAll } from "../../../src/values/program/closing.ts";

test("each closing step runs in turn even if earlier ones fail, and the first failure is thrown at the end", async () => {
  const done: string[] = [];
  const failures: string[] = [];
  const steps = [
    async () => {
      await Promise.resolve();
      done.push("one");
    },
    async () => {
      throw new Error("rejected");
    },
    () => void done.push("two"),
    () => {
      throw new Error("thrown");
    },
    () => void done.push("three"),
  ];
  await assert.rejects(
    closeAll(steps, (error) => failures.push(String(error))),
    /rejected/,
  );
  assert.deepEqual(done, ["one", "two", "three"]);
  assert.deepEqual(failures, ["Error: rejected", "Error: thrown"]);
});
