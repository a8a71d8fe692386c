// docs/failure-model.md row B13: other requests run between a script that stopped and its repetition, and the script that
// finishes it may stop as well.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openStore } from "../../../src/store/open.ts";
import { loadScripts } from "../../../src/store/redis/scripts.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { Secret } from "../../../src/values/secret.ts";
import { admitAsk, DAY_MS, ridOf, settleAsk, terms } from "./asks.ts";
import { PATIENT } from "./benches.ts";
import { assertIdentities } from "./contract-settle.ts";
import {
  differences,
  finishOthers,
  type Keyspace,
  NOTICES_OF_SCENES,
  openTheatre,
  SCENES,
  type Scene,
  START_MS,
  type Stage,
  stopOnce,
  TAG,
  type Theatre,
} from "./stops.ts";

let theatre: Theatre;
before(async () => {
  const open = (url: string) =>
    openStore({ kind: "redis", url: new Secret(url) }, { ...PATIENT, notices: NOTICES_OF_SCENES });
  theatre = await openTheatre(Object.values(loadScripts()), open);
});
after(() => theatre.close());

/** A request from admission to charge, a top-up, a card and another key's group: none reads the state of the scene. */
async function others({ store }: Stage): Promise<void> {
  await store.credit(TAG, { id: "others", amount: 5_000n, kind: "topup", note: "" });
  const request = admitAsk({ tag: TAG, requestId: ridOf(50), groups: [terms({ group: "others", perKey: true })] });
  await store.createKey(TAG, { id: "key_others", hash: request.keyHash.replace(/./g, "e") as never, group: "others" });
  const asked = { ...request, keyHash: request.keyHash.replace(/./g, "e") as never };
  const answer = await store.admit(asked);
  assert.equal(answer.outcome, "admitted");
  await store.extend({ tag: TAG, requestId: ridOf(50), target: nanoUsd(150n) });
  const permit = { storeTimeMs: START_MS, group: "others", keyId: "key_others", entitlement: undefined };
  const settled = await store.settle(settleAsk(asked, permit, { amount: 20n, memo: "{}" }));
  assert.equal(settled.outcome, "settled");
  const card = { card: "day", plan: "pro", group: "others", lastsMs: DAY_MS, afterPrevious: false, reference: "o" };
  await store.grant(TAG, { id: "others", ...card, quota: nanoUsd(10n) });
}

async function playedWith(scene: Scene, work: (stage: Stage) => Promise<void>): Promise<Keyspace> {
  await theatre.clear();
  await scene.prepare(theatre.direct);
  await work(theatre.direct);
  return theatre.keyspace();
}

const MONEY = SCENES.filter(
  ({ script, step }) => !step && ["admit", "extend", "settle", "credit", "grant"].includes(script),
);

for (const scene of MONEY) {
  test(`${scene.script}, ${scene.name}: other requests after a stop, then the repeated call`, async () => {
    const first = await playedWith(scene, async (stage) => {
      await scene.act(stage);
      await others(stage);
      await scene.act(stage);
    });
    const last = await playedWith(scene, async (stage) => {
      await others(stage);
      await scene.act(stage);
    });
    for (let command = 1; ; command++) {
      const at = await stopOnce(theatre, scene, command);
      if (at === undefined) return;
      await others(theatre.direct);
      await scene.act(theatre.proxied);
      const found = await theatre.keyspace();
      const unlike = [first, last].map((state) => differences(found, state)).sort((a, b) => a.length - b.length)[0];
      const marks = unlike?.filter((place) => !place.includes(":d:"));
      assert.deepEqual(marks, [], at);
      const state = await theatre.direct.store.inspect(TAG);
      if (state && !scene.name.includes("failed tries")) assertIdentities(state);
    }
  });
}

/** The scenes with the most kinds of commands, and with more than one ledger line. */
const RICH = ["a charge above all funds, with failed tries", "a charge under an idempotency key"];

for (const scene of SCENES.filter(({ name }) => RICH.includes(name))) {
  test(`${scene.script}, ${scene.name}: the script that finishes a stopped one stops as well, at any command`, async () => {
    const whole = await playedWith(scene, async (stage) => void (await scene.act(stage)));
    let ended = 0;
    for (let command = 1; ; command++) {
      for (let second = 1; ; second++) {
        const at = await stopOnce(theatre, scene, command);
        if (at === undefined) {
          assert.ok(ended > 50, `${ended} pairs of stops`);
          return;
        }
        theatre.stopper.stopAt("settle", second);
        await finishOthers(theatre.proxied).catch(() => undefined);
        const then = theatre.stopper.goOn();
        await scene.act(theatre.proxied);
        assert.deepEqual(differences(await theatre.keyspace(), whole), [], `${at}, then ${then}`);
        if (then === undefined) break;
        ended++;
      }
    }
  });
}
