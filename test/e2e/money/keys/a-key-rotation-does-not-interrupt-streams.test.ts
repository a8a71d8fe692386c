// docs/decisions/a-rotated-key-is-one-key.md: streams that run while their key is rotated continue, and each is charged
// once.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { newKey } from "../../../../src/values/key.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, usageLines } from "../../protocol/whole/asking.ts";

const STREAMS = 20;

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here?.close());

for (const overlapMs of [0, 3_600_000]) {
  test(`${STREAMS} streams continue through a rotation with an overlap of ${overlapMs} ms`, async () => {
    const account = await here.account({ usd: "5" });
    const answer = JSON.stringify({ text: "word ".repeat(60), pace: { betweenMs: 10 } });
    const turn = { stream: true, messages: [{ role: "user", content: `simulate: ${answer}` }] };
    const replies = await Promise.all(Array.from({ length: STREAMS }, () => ask(here, "chat", account.key, turn)));
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
    // Their headers have come, their ends have not: the key's value changes in between.
    const next = newKey(account.tag, randomBytes);
    await here.store.rotateKey(account.tag, account.keyId, { hash: next.hash, overlapMs });
    const byOld = await ask(here, "chat", account.key);
    if (overlapMs === 0) assert.deepEqual([byOld.status, (await errorOf(byOld)).cause], [401, "expired_key"]);
    else assert.equal(byOld.status, 200);
    const byNew = await ask(here, "chat", next.text);
    assert.equal(byNew.status, 200);
    for (const reply of [byOld, byNew]) if (!reply.bodyUsed) await reply.text();
    for (const reply of replies) assert.match(await reply.text(), /data: \[DONE\]/);
    await assertAtRest(here, account);
    const lines = await usageLines(here, account);
    assert.equal(lines.length, STREAMS + (overlapMs === 0 ? 1 : 2));
    assert.deepEqual(new Set(lines.map(({ key }) => key)), new Set([account.keyId]), "both values count as one key");
    assert.equal(new Set(lines.map(({ reference }) => reference)).size, lines.length);
  });
}
