/** src/settle/recovery/epoch.ts: a full disk is reported, and does not fill the log, which may be on the same disk. */
import assert from "node:assert/strict";
import test from "node:test";
import { openStoreEpoch } from "../../../src/settle/recovery/epoch.ts";
import type { EpochMark, Epochs } from "../../../src/store/epoch.ts";
import type { Log } from "../../../src/telemetry/log.ts";
import { HandClock } from "../../e2e/protocol/whole/hand-clock.ts";

const FOUND: EpochMark = { id: "one", count: 5, past: [], stopped: false };

test("a store's history that cannot be saved is logged once a minute, and saved at the first check that can", async () => {
  const clock = new HandClock();
  const logged: unknown[] = [];
  let saves = 0;
  let full = true;
  const epoch = await openStoreEpoch({
    store: { epochParts: 1, countEpoch: async () => FOUND } as unknown as Epochs,
    file: {
      load: async () => new Map(),
      async save() {
        if (full) throw new Error("ENOSPC: no space left on device, write");
        saves++;
      },
    },
    clock,
    log: { error: (facts: unknown) => logged.push(facts) } as unknown as Log,
    random: (bytes) => Buffer.alloc(bytes),
    onChange: () => undefined,
  });
  for (let second = 0; second < 61; second++) {
    await epoch.check();
    clock.advance(1_000);
  }
  const line = { reason: "Error: ENOSPC: no space left on device, write" };
  assert.deepEqual(logged, [line, line]);
  full = false;
  await epoch.check();
  await epoch.check();
  assert.equal(saves, 1);
});
