/** A Redis script takes about 8,000 values in one call: an account with more cards than that still works. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { accountKey } from "../../../src/store/redis/keys.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { startRedis, type TestRedis } from "../../rig/redis.ts";
import { admitAsk, admitted, cardTerms, DAY_MS, makeAccount, ridOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

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

/** Gives an account this many copies of its card in one call: one by one it takes minutes. */
const AGAIN = `
local ids, fields = { ARGV[1] }, redis.call('HMGET', KEYS[1], 'e:' .. ARGV[1], 'ep:' .. ARGV[1], 'eh:' .. ARGV[1])
for n = 1, tonumber(ARGV[2]) do
  local id = 'more' .. n
  local fixed = cjson.decode(fields[1])
  fixed[1] = id
  redis.call('HSET', KEYS[1], 'e:' .. id, cjson.encode(fixed), 'ep:' .. id, fields[2], 'eh:' .. id, fields[3])
  ids[#ids + 1] = id
end
redis.call('HSET', KEYS[1], 'es', cjson.encode(ids))`;

for (const count of [999, 1_000, 1_001, 2_700]) {
  test(`${count} cards are listed and pay, and one more can be given`, async () => {
    const tag = await makeAccount(store, `Cmany${count}`, { group: "cards" });
    const card = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious: false, reference: "" };
    const given = { ...card, quota: nanoUsd(500n), gift: true as const };
    await store.grant(tag, { ...given, id: "first" });
    await redis.command("EVAL", AGAIN, "1", accountKey(tag), "first", String(count - 1));
    const { cards } = (await store.listCards(tag)) ?? assert.fail();
    assert.equal(new Set(cards.map(({ id }) => id)).size, count);
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(count), plans: ["pro"], groups: [cardTerms()] })));
    assert.ok(await store.grant(tag, { ...given, id: "last" }));
    assert.equal((await store.listCards(tag))?.cards.length, count + 1);
  });
}
