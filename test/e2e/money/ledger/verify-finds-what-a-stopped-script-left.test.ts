// docs/failure-model.md row B13: `ledger verify` finds the traces of a script that stopped halfway until the script is
// completed, and nothing after that.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Finding } from "../../../../src/store/audit/snapshot.ts";
import type { Store } from "../../../../src/store/contract.ts";
import { auditAccount, auditMarks, type MarkFinding } from "../../../../src/store/ledger/audit.ts";
import { openStore } from "../../../../src/store/open.ts";
import { loadScripts } from "../../../../src/store/redis/scripts.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { auditToEnd } from "../../../rig/audit-to-end.ts";
import { startRedis } from "../../../rig/redis.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk } from "../../../unit/store/asks.ts";
import { openUrl, PATIENT } from "../../../unit/store/benches.ts";
import { differences, openTheatre, SCENES, stopOnce, TAG, type Theatre } from "../../../unit/store/stops.ts";

let theatre: Theatre;
before(async () => {
  const open = (url: string) => openStore({ kind: "redis", url: new Secret(url) }, PATIENT);
  theatre = await openTheatre(Object.values(loadScripts()), open);
});
after(() => theatre.close());

async function findingsOf(store: Store, tag: AccountTag): Promise<readonly Finding[]> {
  const name = (await store.getAccount(tag))?.name ?? "";
  return (await auditToEnd(auditAccount(store, { name, tag }))).findings;
}

/** The findings of the scan through the settled marks, of one account or of all. */
async function marksOf(store: Store, tag?: AccountTag): Promise<(string | undefined)[][]> {
  const found: MarkFinding[] = [];
  for await (const step of auditMarks(store, tag)) {
    assert.equal(step.error, undefined);
    found.push(...(step.found ?? []));
  }
  return found.map(({ account, check, about }) => [account, check, about]).sort();
}

/** Checks that recompute charges from memos: the charges of these scenes have no memos. */
const OF_MEMOS = ["charge", "attempts", "day_counts"];

const CHANGES = ["admit", "extend", "settle", "credit", "grant", "ledger-archive"];

/** Scenes that write once, or not at all. */
const ONE_WRITE = ["a refusal for its tokens", "a request that was settled before", "a request that was voided before"];

for (const scene of SCENES.filter(({ script, step }) => !step && CHANGES.includes(script))) {
  test(`${scene.script}, ${scene.name}: found if it stopped after its first write, and only then`, async () => {
    await theatre.clear();
    await scene.prepare(theatre.direct);
    const untouched = await theatre.keyspace();
    await scene.act(theatre.direct);
    const whole = await findingsOf(theatre.direct.store, TAG);
    assert.deepEqual(
      whole.filter(({ check }) => !OF_MEMOS.includes(check)),
      [],
    );
    let half = 0;
    for (let command = 1; ; command++) {
      const at = await stopOnce(theatre, scene, command);
      if (at === undefined) break;
      const moved = differences(await theatre.keyspace(), untouched);
      const isHalf = moved.some((place) => place === `{a:${TAG}} todo`);
      if (isHalf) half++;
      const found = await findingsOf(theatre.direct.store, TAG);
      assert.equal(
        found.some(({ check }) => check === "unfinished"),
        isHalf,
        `${at}: ${moved}`,
      );
      assert.deepEqual(await marksOf(theatre.direct.store), [], `${at}: the line of the mark may still be written`);
      await scene.act(theatre.proxied);
      assert.deepEqual(await marksOf(theatre.direct.store), [], `${at}, ended`);
      assert.deepEqual(await findingsOf(theatre.direct.store, TAG), whole, `${at}, ended`);
    }
    assert.equal(half > 0, !ONE_WRITE.includes(scene.name), `${half} stops`);
  });
}

test("a request that is settled without a line, and a settled one whose hold still exists, are found", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const [tag, other] = [await makeAccount(store, "Marked", { funds: 9_000n }), await makeAccount(store, "Other")];
  const markKey = (of: AccountTag, rid: string) => `{a:${of}}:d:${rid}`;
  const mark = (rid: string, ...texts: string[]) => redis.command("SET", markKey(tag, rid), JSON.stringify(texts));
  // Really charged, more than one page of lines.
  const charged = Array.from({ length: 120 }, (_, at) => ridOf(100 + at));
  for (const requestId of charged) {
    const ask = admitAsk({ tag, requestId });
    await store.settle(settleAsk(ask, admitted(await store.admit(ask)), { amount: 30n }));
  }
  assert.deepEqual(await marksOf(store), []);
  // Marks of the previous version, which name no line, and marks whose line number belongs to a line of another
  // version.
  await mark(charged[110] as string, "30", "");
  await mark(charged[111] as string, "30", "", "4");
  // Voided, by this version and by the previous one.
  await mark(ridOf(1), "0", "", "");
  await mark(ridOf(2), "0", "");
  assert.deepEqual(await marksOf(store), []);

  await mark(ridOf(3), "30", "");
  await mark(ridOf(4), "0", "", "7");
  await mark(ridOf(6), "30", "", "");
  await mark(ridOf(7), "no number", "", "x");
  await redis.command("SET", markKey(tag, ridOf(8)), "no list");
  await redis.command("SET", markKey(other, ridOf(9)), '["1",""]');
  const ofMarked = [
    ["Marked", "mark_without_line", ridOf(3)],
    ["Marked", "mark_without_line", ridOf(4)],
    ["Marked", "mark_without_line", ridOf(6)],
    ["Marked", "unreadable", ridOf(7)],
    ["Marked", "unreadable", ridOf(8)],
  ];
  assert.deepEqual(await marksOf(store), [...ofMarked, ["Other", "mark_without_line", ridOf(9)]]);
  assert.deepEqual(await marksOf(store, tag), ofMarked);

  // A key of another type makes its own account unreadable, and no other.
  await redis.command("LPUSH", markKey(other, ridOf(10)), "x");
  assert.deepEqual(await marksOf(store, other), [["Other", "unreadable", undefined]]);
  assert.deepEqual(await marksOf(store, tag), ofMarked);

  const held = await makeAccount(store, "Held", { funds: 9_000n });
  admitted(await store.admit(admitAsk({ tag: held, requestId: ridOf(5) })));
  await redis.command("SET", markKey(held, ridOf(5)), '["0","",""]');
  assert.deepEqual(
    (await findingsOf(store, held)).map(({ what }) => what),
    [`The request ${ridOf(5)} is settled, but its hold still exists.`],
  );
});
