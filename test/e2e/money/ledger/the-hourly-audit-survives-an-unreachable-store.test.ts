/**
 * docs/failure-model.md row B3 for the hourly audit: it waits while the store is unreachable, continues where it was,
 * and is not stopped by one account.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type Store, StoreError } from "../../../../src/store/contract.ts";
import { overlay } from "../../../../src/store/overlay.ts";
import { watchLedger } from "../../../../src/store/upkeep/ledger-watch.ts";
import { createLog } from "../../../../src/telemetry/log.ts";
import { createMetrics } from "../../../../src/telemetry/metrics.ts";
import { openTestStore } from "../../../unit/console/test-store.ts";
import { makeAccount, tagOf } from "../../../unit/store/asks.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";

interface Scene {
  readonly clock: HandClock;
  readonly lines: Record<string, unknown>[];
  /** Advances the clock until a gauge has this value. */
  until(gauge: string, value: number): Promise<void>;
}

/** Three accounts, 250 lines in the middle one, with the hourly audit running. */
async function scene(t: TestContext, failing: (store: Store) => Store): Promise<Scene> {
  const store = await openTestStore(t);
  for (const name of ["first", "second", "third"]) await makeAccount(store, name, { funds: 10n ** 12n });
  for (let at = 0; at < 249; at++) {
    await store.credit(tagOf("second"), { id: `p${at}`, amount: 1n, kind: "topup", note: "" });
  }
  const clock = new HandClock();
  const metrics = createMetrics();
  metrics.ledgerUnbalanced.set(-1);
  const lines: Record<string, unknown>[] = [];
  const log = createLog({
    level: "debug",
    destination: { write: (line: string) => void lines.push(JSON.parse(line)) },
  });
  const watch = watchLedger({ store: failing(store), clock, metrics, log });
  t.after(() => watch.stop());
  clock.advance(60_000);
  return {
    clock,
    lines,
    async until(gauge, value) {
      for (let turns = 0; ; turns++) {
        if ((await metrics.page()).body.includes(`tollgate_${gauge} ${value}\n`)) return;
        assert.ok(turns < 100_000, `${gauge} never becomes ${value}`);
        clock.advance(10);
        await setImmediate();
      }
    },
  };
}

test("an audit asks an unreachable store again, and reads nothing twice", async (t) => {
  const read: number[] = [];
  const { until, lines } = await scene(t, (store) => {
    let calls = 0;
    return overlay(store, {
      async readLedger(tag, after, limit) {
        calls += 1;
        if (calls % 3 === 0) throw new StoreError("unavailable", "away");
        if (tag === tagOf("second")) read.push(after);
        return store.readLedger(tag, after, limit);
      },
    });
  });
  await until("ledger_unbalanced_accounts", 0);
  assert.deepEqual(read, [0, 50, 100, 150, 200]);
  assert.deepEqual(lines, []);
});

test("an audit is cut off if the store stays unreachable, and the next hour starts another one", async (t) => {
  let away = true;
  const { until, lines, clock } = await scene(t, (store) =>
    overlay(store, {
      async readFigures(...ask) {
        if (away) throw new StoreError("unavailable", "away");
        return store.readFigures(...ask);
      },
    }),
  );
  while (lines.length === 0) {
    clock.advance(1_000);
    await setImmediate();
  }
  assert.match(String(lines[0]?.msg), /the hourly audit of the ledger was cut off/);
  away = false;
  clock.advance(3_600_000);
  await until("ledger_unbalanced_accounts", 0);
});

test("an account that cannot be read counts as one that does not balance, and the others are audited", async (t) => {
  const audited: string[] = [];
  const { until, lines } = await scene(t, (store) =>
    overlay(store, {
      async readFigures(tag, ask) {
        audited.push(tag);
        if (tag !== tagOf("second")) return store.readFigures(tag, ask);
        throw new StoreError("unavailable", "WRONGTYPE", { outcome: "refused", cause: new Error("WRONGTYPE") });
      },
    }),
  );
  await until("ledger_unbalanced_accounts", 1);
  assert.deepEqual([...new Set(audited)].sort(), ["first", "second", "third"].map(tagOf).sort());
  const [line] = lines;
  assert.deepEqual([lines.length, line?.account], [1, `acct_${tagOf("second")}`]);
  assert.deepEqual(
    (lines[0]?.findings as { check: string }[] | undefined)?.map(({ check }) => check),
    ["unreadable"],
  );
});

test("an account whose cards cannot be read is reported at once, and the others are counted", async (t) => {
  const asked = new Set<string>();
  const { until, lines, clock } = await scene(t, (store) =>
    overlay(store, {
      async listCards(tag) {
        asked.add(tag);
        if (tag !== tagOf("first")) return store.listCards(tag);
        throw new StoreError("unavailable", "DAMAGED", { outcome: "refused" });
      },
    }),
  );
  await until("ledger_unbalanced_accounts", 1);
  while (asked.size < 3) {
    clock.advance(10);
    await setImmediate();
  }
  assert.deepEqual([...asked].toSorted(), ["first", "second", "third"].map(tagOf).toSorted());
  assert.deepEqual(
    lines.map(({ account, reason }) => [account, reason]),
    [[`acct_${tagOf("first")}`, "DAMAGED"]],
  );
});

test("findings of a pass are shown although the rest of the pass is cut off", async (t) => {
  let audits = 0;
  const { until, lines, clock } = await scene(t, (store) =>
    overlay(store, {
      async readFigures() {
        audits += 1;
        if (audits === 1) throw new StoreError("unavailable", "WRONGTYPE", { outcome: "refused" });
        throw new StoreError("unavailable", "away");
      },
    }),
  );
  await until("ledger_unbalanced_accounts", 1);
  while (!lines.some(({ msg }) => /was cut off/.test(String(msg)))) {
    clock.advance(1_000);
    await setImmediate();
  }
  await until("ledger_unbalanced_accounts", 1);
});
