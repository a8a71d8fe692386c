/** A check for cards about to end reads the names of all accounts first. If the store does not answer, a minute later it may. */
import assert from "node:assert/strict";
import test from "node:test";
import { watchCards } from "../../../src/notices/card-watch.ts";
import { StoreError } from "../../../src/store/contract.ts";
import type { Log } from "../../../src/telemetry/log.ts";
import { NOTICE_KINDS, type NoticeSettings } from "../../../src/values/settings.ts";
import { ManualClock } from "../settle/rig.ts";

const STEP_MS = 1_000;

test("a check of all cards that failed is repeated after a minute, and the next one follows ten minutes later", async (t) => {
  const clock = new ManualClock();
  const begun: number[] = [];
  const watch = watchCards({
    store: {
      async listAccountNames() {
        if (begun.push(clock.monotonicMs()) === 1) throw new StoreError("unavailable", "no");
        return { items: [], next: undefined };
      },
      listCards: () => assert.fail("there is no account"),
      addNotice: () => assert.fail("there is no card"),
    },
    settings: () => ({ kinds: new Set(NOTICE_KINDS), cardEndsWithinMs: 86_400_000 }) as unknown as NoticeSettings,
    isLeader: () => true,
    clock,
    log: { warn() {} } as unknown as Log,
  });
  t.after(() => watch.stop());
  while (begun.length < 3) await clock.advance(STEP_MS);
  assert.deepEqual(
    [1, 2].map((at) => (begun[at] as number) - (begun[at - 1] as number)),
    [60_000, 600_000],
  );
});
