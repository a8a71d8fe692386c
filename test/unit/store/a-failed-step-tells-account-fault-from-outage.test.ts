/**
 * docs/failure-model.md rows B4, B5 and B9: a step that fails twice says whether Redis has answered, and whether the fault
 * concerns one account or the server. What the scripts' own checks refuse is a defect and is not retried. The test simulates
 * the connection.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError, StoreUnreachableError } from "../../../src/store/contract.ts";
import type { RedisConnection } from "../../../src/store/redis/connection/connect.ts";
import type { Rights } from "../../../src/store/redis/connection/rights.ts";
import { Runner } from "../../../src/store/redis/connection/runner.ts";
import type { Script } from "../../../src/store/redis/scripts.ts";

const LIMITS = { tryMs: 1_000, totalMs: 2_000 };
const SCRIPT = { name: "admit", sha: "0", source: "return 1" } as Script;
const reply = (message: string) => Object.assign(new Error(message), { name: "ReplyError" });

function bench(answer: () => Promise<unknown>, rights?: Partial<Rights>) {
  const calls: string[] = [];
  const connection = {
    evalsha: () => {
      calls.push("evalsha");
      return answer();
    },
    eval: async () => {
      calls.push("eval");
      return "evaluated";
    },
    ready: async () => void calls.push("ready"),
  } as unknown as RedisConnection;
  const runner = new Runner(connection, LIMITS, rights as Rights | undefined);
  return { calls, runner, run: () => runner.script(SCRIPT, ["key"], []) };
}

async function errorOf(work: () => Promise<unknown>): Promise<unknown> {
  return work().then(
    () => assert.fail("the call did not fail"),
    (error: unknown) => error,
  );
}

const STATES =
  "LOADING READONLY MASTERDOWN CLUSTERDOWN BUSY OOM MISCONF NOREPLICAS NOAUTH NOPERM NORIGHT WRONGPASS EXECABORT MOVED ASK";
for (const state of STATES.split(" ")) {
  test(`${state} is an error of the server and says nothing about the account`, async () => {
    const { calls, run } = bench(() => Promise.reject(reply(`${state} some words`)));
    const error = await errorOf(run);
    assert.ok(error instanceof StoreError && !(error instanceof StoreUnreachableError), "Redis has answered");
    assert.equal(error.outcome, "unknown");
    assert.deepEqual(calls, ["evalsha", "ready", "evalsha"]);
  });
}

for (const message of [
  "WRONGTYPE a key",
  "ERR a script",
  "Too many Cluster redirections. Last error: ReplyError: MOVED 1 a:1",
  "Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN Hash slot not served",
  "CLUSTERDOWN Hash slot not served",
]) {
  test(`${message.slice(0, 40)}: an error of the account, not an outage`, async () => {
    const error = await errorOf(bench(() => Promise.reject(reply(message))).run);
    assert.ok(error instanceof StoreError && !(error instanceof StoreUnreachableError));
    assert.equal(error.outcome, "refused");
  });
}

for (const before of ["", "Too many Cluster redirections. Last error: ReplyError: "]) {
  test(`${before || "The first reply: "}NOSCRIPT: the text of the script is sent`, async () => {
    const { calls, run } = bench(() => Promise.reject(reply(`${before}NOSCRIPT No matching script.`)));
    assert.equal(await run(), "evaluated");
    assert.deepEqual(calls, ["evalsha", "eval"]);
  });
}

test("without an answer the store is unreachable and the outcome unknown", async () => {
  const error = await errorOf(bench(() => Promise.reject(new Error("Connection is closed."))).run);
  assert.ok(error instanceof StoreUnreachableError);
  assert.equal(error.outcome, "unknown");
});

test("a script call that fails the script's own checks is a defect and is sent once", async () => {
  const { calls, run } = bench(() => Promise.reject(reply("BADARG a memo is short")));
  assert.ok((await errorOf(run)) instanceof RangeError);
  assert.deepEqual(calls, ["evalsha"]);
});

test("a script waits until the rights of its server are known, and an error about rights triggers another check", async () => {
  const doubts: number[] = [];
  const kept = new StoreError("unavailable", "may not ZREM", { outcome: "unsent" });
  const refused = bench(async () => 1, { pass: () => Promise.reject(kept) });
  assert.equal(await errorOf(refused.run), kept);
  assert.deepEqual(refused.calls, [], "neither sent nor retried");
  const lacking = bench(() => Promise.reject(reply("NOPERM this user has no permissions")), {
    pass: () => undefined,
    doubt: () => void doubts.push(1),
  });
  await errorOf(lacking.run);
  assert.equal(doubts.length, 1);
});

test("at most 10,000 steps wait for Redis: a further one is refused unsent, and there is room again when they have ended", async () => {
  const answer = Promise.withResolvers<number>();
  const { runner } = bench(() => answer.promise);
  const waiting = Array.from({ length: 10_000 }, () => runner.step(() => answer.promise));
  const error = await errorOf(() => runner.step(() => answer.promise));
  assert.ok(error instanceof StoreError && error.outcome === "unsent");
  answer.resolve(1);
  await Promise.all(waiting);
  assert.equal(await runner.step(() => answer.promise), 1);
});
