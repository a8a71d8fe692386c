// Row B13: whatever a script that stopped has left, `ledger verify` finds it until it is ended, and nothing then.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Store } from "../../src/store/contract.ts";
import { auditAccount, auditToEnd } from "../../src/store/ledger-audit.ts";
import { openStore } from "../../src/store/open.ts";
import { loadScripts } from "../../src/store/redis/scripts.ts";
import type { AccountTag } from "../../src/values/key.ts";
import { Secret } from "../../src/values/secret.ts";
import { startRedis } from "../rig/redis.ts";
import { admitAsk, admitted, makeAccount, ridOf } from "../store/asks.ts";
import { openUrl } from "../store/benches.ts";
import { differences, openTheatre, PATIENT, SCENES, stopOnce, TAG, type Theatre } from "../store/stops.ts";

let theatre: Theatre;
before(async () => {
  const open = (url: string) => openStore({ kind: "redis", url: new Secret(url) }, PATIENT);
  theatre = await openTheatre(Object.values(loadScripts()), open);
});
after(() => theatre.close());

const UNFINISHED = /^A change of it has stopped half-way;/;

/** What an account's audit finds. */
async function findingsOf(store: Store, tag: AccountTag): Promise<string[]> {
  const name = (await store.getAccount(tag))?.name ?? "";
  const { findings } = await auditToEnd(auditAccount(store, { name, tag }));
  return findings.map(({ what }) => what);
}

/** What is found, but for memos: the charges of these scenes have none to be computed again from. */
async function found(): Promise<string[]> {
  return (await findingsOf(theatre.direct.store, TAG)).filter((what) => !/memo|its tokens at its prices/.test(what));
}

const CHANGES = ["admit", "extend", "settle", "credit", "grant", "ledger-archive"];

/** Scenes that write once, or not at all. */
const ONE_WRITE = ["a refusal for its tokens", "a request that was settled before", "a request that was voided before"];

for (const scene of SCENES.filter(({ script, step }) => !step && CHANGES.includes(script))) {
  test(`${scene.script}, ${scene.name}: found where it has stopped behind its first write, and only there`, async () => {
    await theatre.clear();
    await scene.prepare(theatre.direct);
    const untouched = await theatre.keyspace();
    let half = 0;
    for (let command = 1; ; command++) {
      const at = await stopOnce(theatre, scene, command);
      if (at === undefined) break;
      const moved = differences(await theatre.keyspace(), untouched);
      const isHalf = moved.some((place) => place === `{a:${TAG}} todo`);
      if (isHalf) half++;
      assert.equal(
        (await found()).some((what) => UNFINISHED.test(what)),
        isHalf,
        `${at}: ${moved}`,
      );
      await scene.act(theatre.proxied);
      assert.deepEqual(await found(), [], `${at}, ended`);
    }
    assert.equal(half > 0, !ONE_WRITE.includes(scene.name), `${half} stops`);
  });
}

test("a request that counts as settled without a line, and one whose hold is still there, are found", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const tag = await makeAccount(store, "Marked", { funds: 1_000n });
  const mark = (rid: string, ...texts: string[]) => redis.command("SET", `{a:${tag}}:d:${rid}`, JSON.stringify(texts));
  const told = () => findingsOf(store, tag);
  // Voided, by this version and by the one before.
  await mark(ridOf(1), "0", "", "");
  await mark(ridOf(2), "0", "");
  assert.deepEqual(await told(), []);
  await mark(ridOf(3), "30", "");
  await mark(ridOf(4), "0", "", "7");
  const request = admitAsk({ tag, requestId: ridOf(5) });
  admitted(await store.admit(request));
  await mark(ridOf(5), "0", "", "");
  assert.deepEqual((await told())?.sort(), [
    `The request ${ridOf(3)} counts as settled, and has no line.`,
    `The request ${ridOf(4)} counts as settled, and has no line.`,
    `The request ${ridOf(5)} is settled, and its hold is still there.`,
  ]);
});
