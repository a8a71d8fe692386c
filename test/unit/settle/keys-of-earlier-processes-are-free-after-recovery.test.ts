/**
 * Promise 2 of ARCHITECTURE.md: an embedded store frees the idempotency key of a request of an earlier process only when the store
 * has everything that the journal kept of such requests. Before, the request may still be charged, and a second one under its key
 * would be charged, too.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { openCharging } from "../../../src/settle/recovery/charging.ts";
import { Context } from "../../../src/store/embedded/context.ts";
import { memoryDatabase } from "../../../src/store/embedded/database/open.ts";
import { embeddedOver } from "../../../src/store/embedded/store.ts";
import { composeStore } from "../../../src/store/middleware/compose.ts";
import { overlay } from "../../../src/store/overlay.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { askOf, ForgetfulStore, idOf, ManualClock, openOn, SMALL_BYTES_MAX, turns } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

/** Calls that wait until the test opens it. */
class Gate {
  waiting = 0;
  #open: () => void = () => {};
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  async pass(): Promise<void> {
    this.waiting++;
    await this.#opened;
  }

  open(): void {
    this.#open();
  }
}

/** The calls of the store that wait. */
interface Gates {
  readonly settle?: Gate;
  readonly identity?: Gate;
}

/** A process on this disk whose store has this identity. */
async function processOn(t: TestContext, disk: SimDisk, books: ForgetfulStore, run: string, gates: Gates = {}) {
  const [clock, log, metrics] = [new ManualClock(), createLog({ level: "silent" }), createMetrics()];
  const embedded = embeddedOver(new Context(memoryDatabase(), () => clock.wallMs()));
  const store = overlay(embedded, {
    async settle(ask) {
      await gates.settle?.pass();
      return books.settle(ask);
    },
    settledAmounts: (tag, ids) => books.settledAmounts(tag, ids),
    async identity() {
      await gates.identity?.pass();
      return run;
    },
  });
  const charging = await openCharging({
    settings: { dir: "journal", fsync: "group", bytesMax: SMALL_BYTES_MAX },
    store: composeStore(store, { clock, random: () => 0.5, metrics, log, remote: false }),
    storeKind: "embedded",
    clock,
    metrics,
    log,
    machine: {
      open: async (settings) => ({ ...(await openOn(disk, clock, settings)), disk }),
      epochFile: () => ({ load: async () => new Map(), save: async () => {} }),
      random: (bytes) => Buffer.alloc(bytes, 7),
      jitter: () => 0.5,
    },
  });
  t.after(async () => {
    for (const gate of [gates.settle, gates.identity]) gate?.open();
    await charging.close();
    await embedded.close();
  });
  return { charging, clock };
}

test("nothing is recovered before a charge that an earlier process left is settled", async (t) => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock);
  const written = journal.final(askOf(1));
  await clock.advance(2);
  await written;
  const settle = new Gate();
  const books = new ForgetfulStore();
  const { charging } = await processOn(t, disk.afterKill(), books, "one", { settle });
  await turns();
  assert.deepEqual([settle.waiting, charging.isRecovered()], [1, false]);
  settle.open();
  await turns();
  assert.deepEqual([books.settled.has(idOf(1)), charging.isRecovered()], [true, true]);
});

test("nothing is recovered before the store says which one it is, although no charge was left", async (t) => {
  const identity = new Gate();
  const { charging } = await processOn(t, new SimDisk(), new ForgetfulStore(), "one", { identity });
  await turns();
  assert.deepEqual([identity.waiting > 0, charging.isRecovered()], [true, false]);
  identity.open();
  await turns();
  assert.equal(charging.isRecovered(), true);
});

test("nothing is recovered before a charge that the store lost with the power is there again", async (t) => {
  const [disk, books] = [new SimDisk(), new ForgetfulStore()];
  const first = await processOn(t, disk, books, "one");
  const charged = first.charging.settler.settle(askOf(1));
  await first.clock.advance(10);
  await charged;
  await first.charging.close();
  books.settled.delete(idOf(1));
  const settle = new Gate();
  const { charging } = await processOn(t, disk.afterKill(), books, "another run of the machine", { settle });
  await turns();
  assert.deepEqual([settle.waiting, charging.isRecovered()], [1, false]);
  settle.open();
  await turns();
  assert.deepEqual([books.settled.has(idOf(1)), charging.isRecovered()], [true, true]);
});
