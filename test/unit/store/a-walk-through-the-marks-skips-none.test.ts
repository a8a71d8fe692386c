/**
 * A part of all keys may have more accounts, and an account more marks, than one script looks at: each settled request
 * without a line, and each account that no name leads to, is found all the same.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { accountKey, settledKey } from "../../../src/store/redis/keys.ts";
import { startRedis, type TestRedis } from "../../rig/redis.ts";
import { ridOf, tagOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

const WITHOUT_LINE = '["30","",""]';

let redis: TestRedis;
let store: Store;
before(async () => {
  redis = await startRedis();
  store = await openUrl(redis);
});
after(async () => {
  await store.close();
  await redis.stop();
});

/** What a whole walk finds, in order. */
async function walked(): Promise<{ readonly marks: string[]; readonly unlisted: string[] }> {
  const marks = new Set<string>();
  const unlisted = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await store.pageMarks(undefined, cursor);
    for (const { tag, requestId } of page.items) marks.add(`${tag} ${requestId}`);
    for (const { tag } of page.unlisted ?? []) unlisted.add(tag);
    cursor = page.next;
  } while (cursor !== undefined);
  return { marks: [...marks].sort(), unlisted: [...unlisted].sort() };
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

test("marks of forty accounts, and 250 marks of one, are all found", async () => {
  const few = numbers(40).map((n) => [tagOf(`Few${n}x`), ridOf(n)] as const);
  const many = numbers(250).map((n) => [tagOf("Many"), ridOf(n)] as const);
  const wanted = [...few, ...many];
  await redis.commands(...wanted.map(([tag, id]) => ["SET", settledKey(tag, id), WITHOUT_LINE]));
  assert.deepEqual((await walked()).marks, wanted.map(([tag, id]) => `${tag} ${id}`).sort());
});

test("250 accounts that no name leads to are all found", async () => {
  const tags = numbers(250).map((n) => tagOf(`Lost${n}x`));
  await redis.commands(...tags.map((tag) => ["HSET", accountKey(tag), "name", tag, "seq", "1"]));
  assert.deepEqual((await walked()).unlisted, tags.toSorted());
});
