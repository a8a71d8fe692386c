/**
 * A card of an hour is reported in its last twenty minutes. So all accounts are checked in much less time, and the time that a check
 * takes does not delay the next one.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { watchCards } from "../../../src/notices/card-watch.ts";
import { Context } from "../../../src/store/embedded/context.ts";
import { memoryDatabase } from "../../../src/store/embedded/database/open.ts";
import { embeddedOver } from "../../../src/store/embedded/store.ts";
import type { Log } from "../../../src/telemetry/log.ts";
import { NOTICE_KINDS, type NoticeSettings } from "../../../src/values/settings.ts";
import { ManualClock } from "../settle/rig.ts";
import { tagOf } from "../store/asks.ts";

const ACCOUNTS = 1_000;
const MANY_ACCOUNTS = 100_000;
const CHECK_EVERY_MS = 600_000;
/** Steps of the clock during a check, and between two. */
const STEP_MS = 50;
const WAIT_MS = 1_000;

test("cards of 100,000 accounts are checked in four minutes, and again ten minutes after the beginning of the check before", async (t) => {
  const clock = new ManualClock();
  const store = embeddedOver(new Context(memoryDatabase(), () => clock.wallMs()));
  for (let i = 0; i < ACCOUNTS; i++) await store.createAccount({ tag: tagOf(`${i}`), name: `a${i}`, plan: "pro" });
  const begun: number[] = [];
  const ended: number[] = [];
  const settings = { kinds: new Set(NOTICE_KINDS), cardEndsWithinMs: 86_400_000 } as unknown as NoticeSettings;
  const watch = watchCards({
    store: {
      async listAccountNames(cursor, limit) {
        const page = await store.listAccountNames(cursor, limit);
        if (cursor === undefined) begun.push(clock.monotonicMs());
        if (page.next === undefined) ended.push(clock.monotonicMs());
        return page;
      },
      listCards: (tag) => store.listCards(tag),
      addNotice: () => assert.fail("no account has a card"),
    },
    settings: () => settings,
    isLeader: () => true,
    clock,
    log: { warn: (facts: object) => assert.fail(JSON.stringify(facts)) } as unknown as Log,
  });
  t.after(async () => {
    await watch.stop();
    await store.close();
  });
  while (begun.length < 3) await clock.advance(begun.length > ended.length ? STEP_MS : WAIT_MS);
  const tookMs = (ended[0] as number) - (begun[0] as number);
  assert.ok((tookMs * MANY_ACCOUNTS) / ACCOUNTS <= 240_000, `${ACCOUNTS} accounts took ${tookMs} ms`);
  const apartMs = [1, 2].map((at) => (begun[at] as number) - (begun[at - 1] as number));
  for (const ms of apartMs) assert.ok(Math.abs(ms - CHECK_EVERY_MS) <= WAIT_MS, `the checks began ${apartMs} ms apart`);
});
