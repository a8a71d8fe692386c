/** docs/workers.md: the journal of a worker that has ended is settled, also when the gateway shuts down meanwhile. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { openJournal } from "../../../src/settle/journal/open.ts";
import { SETTLE_GRACE_MS } from "../../../src/settle/recovery/charging.ts";
import { takeOverJournals, workerJournal } from "../../../src/settle/recovery/orphan-journals.ts";
import type { Store } from "../../../src/store/contract.ts";
import { openEmbedded } from "../../../src/store/embedded/store.ts";
import { composeStore } from "../../../src/store/middleware/compose.ts";
import { overlay } from "../../../src/store/overlay.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { type Clock, systemClock as clock } from "../../../src/values/time.ts";
import { askOf } from "./rig.ts";

test("a charge that the store has not answered yet keeps a taken-over journal open", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-taken-over-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const settings = { dir: join(dir, "journal"), fsync: "group", bytesMax: 1_048_576 } as const;
  const own = { ...settings, dir: workerJournal(settings.dir, 2) };
  const open = () => openJournal(own, { clock, alarm: assert.fail });
  const left = await open();
  await left.journal.final(askOf(1));
  await left.journal.close();

  const embedded = openEmbedded(join(dir, "data"), () => clock.wallMs());
  t.after(() => embedded.close());
  const waits = Promise.withResolvers<string>();
  const watched: Clock = {
    ...clock,
    after(ms, task) {
      if (ms === SETTLE_GRACE_MS) waits.resolve("waits for the store");
      return clock.after(ms, task);
    },
  };
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const store: Store = overlay(embedded, {
    async settle(ask) {
      asked.resolve();
      await answered.promise;
      return { outcome: "settled", charged: ask.amount, absorbed: ask.absorbed, balance: ask.amount };
    },
  });
  const metrics = createMetrics();
  const log = createLog({ level: "silent" });
  const composed = composeStore(store, { clock: watched, random: Math.random, metrics, log, remote: false });
  const orphans = takeOverJournals({ settings, store: composed, storeKind: "redis", clock: watched, metrics, log }, 1);
  await asked.promise;
  const closing = orphans.close();
  assert.equal(await Promise.race([closing.then(() => "is closed"), waits.promise]), "waits for the store");
  answered.resolve();
  await closing;
  const again = await open();
  assert.equal(again.leftovers.length, 0);
  await again.journal.close();
});
