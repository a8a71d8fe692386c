/** An alert fires on the age of the oldest charge that the store has not answered, which the metric gives in seconds. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { createJournal } from "../../../src/settle/journal/open.ts";
import { openCharging } from "../../../src/settle/recovery/charging.ts";
import { epochFile } from "../../../src/settle/recovery/epoch-file.ts";
import type { Store } from "../../../src/store/contract.ts";
import { openEmbedded } from "../../../src/store/embedded/store.ts";
import { composeStore } from "../../../src/store/middleware/compose.ts";
import { overlay } from "../../../src/store/overlay.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { askOf, ManualClock, SMALL_BYTES_MAX } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

/** Charging on a store that answers settlements as the test says. */
async function charging(t: TestContext, settle: Store["settle"]) {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-charging-"));
  const clock = new ManualClock();
  const metrics = createMetrics();
  const log = createLog({ level: "silent" });
  const embedded = openEmbedded(dir, () => clock.wallMs());
  const disk = new SimDisk();
  const store = composeStore(overlay(embedded, { settle }), {
    ...{ clock, random: Math.random, metrics, log, remote: false },
  });
  const opened = await openCharging({
    settings: { dir, fsync: "group", bytesMax: SMALL_BYTES_MAX },
    ...{ store, storeKind: "embedded", clock, metrics, log },
    machine: {
      open: async (settings, { alarm }) => ({ ...(await createJournal({ ...settings, disk, clock, alarm })), disk }),
      ...{ epochFile, random: (bytes) => Buffer.alloc(bytes, 7), jitter: () => 0.5 },
    },
  });
  t.after(async () => {
    await opened.close();
    await embedded.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const shown = async (series: string) => {
    opened.measure();
    const { body } = await metrics.page();
    return Number(new RegExp(`^${series}(?:\\{.*\\})? (\\S+)$`, "m").exec(body)?.[1] ?? 0);
  };
  return { clock, settler: opened.settler, shown };
}

test("the age of the oldest charge without an answer is shown in seconds", async (t) => {
  const answer = Promise.withResolvers<Awaited<ReturnType<Store["settle"]>>>();
  const { clock, settler, shown } = await charging(t, () => answer.promise);
  const settled = settler.settle(askOf(1));
  await clock.advance(10);
  await settled;
  await clock.advance(4_990);
  assert.equal(await shown("tollgate_journal_oldest_seconds"), 5);
  answer.resolve({ outcome: "settled", charged: nanoUsd(1n), absorbed: nanoUsd(0n), balance: nanoUsd(1n) });
  await clock.advance(0);
  assert.equal(await shown("tollgate_journal_oldest_seconds"), 0);
});
