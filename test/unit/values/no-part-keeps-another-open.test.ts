import assert from "node:assert/strict";
import test from "node:test";
import { closeAll } from "../../../src/values/program/closing.ts";

test("each step is taken, whatever became of the ones before; the first failure is thrown at the end", async () => {
  const done: string[] = [];
  const failures: string[] = [];
  const step = (name: string) => () => void done.push(name);
  const rejects = async () => {
    throw new Error("rejected");
  };
  const throws = () => {
    throw new Error("thrown");
  };
  const closing = closeAll([step("one"), rejects, [throws, step("two")], step("three")], (error) =>
    failures.push(String(error)),
  );
  await assert.rejects(closing, /rejected/);
  assert.deepEqual(done, ["one", "two", "three"]);
  assert.deepEqual(failures, ["Error: rejected", "Error: thrown"]);
});

test("steps in turn wait for those before them, and steps of one list for none of their own", async () => {
  const done: string[] = [];
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const waits = async () => {
    await opened;
    done.push("waited");
  };
  await closeAll([[waits, () => open()], () => void done.push("after")], () => assert.fail());
  assert.deepEqual(done, ["waited", "after"]);
});
