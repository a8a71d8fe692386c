/**
 * ARCHITECTURE.md promise 2 and docs/failure-model.md invariants 28 and 29: a charge is sent until the store answers, with
 * pauses of about two seconds at most. A charge that the journal could not take counts as unrecorded until the store has it,
 * and its client gets the end of its answer only after the store was asked.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { DeadLetter } from "../../../src/settle/journal/dead-letters.ts";
import type { AckOutcome } from "../../../src/settle/journal.ts";
import { Absences } from "../../../src/settle/recovery/absences.ts";
import { createSettler } from "../../../src/settle/settler.ts";
import { StoreError } from "../../../src/store/contract.ts";
import { askOf, ForgetfulStore, idOf, ManualClock, turns } from "./rig.ts";

interface Scene {
  /** The journal refuses every write. */
  readonly broken?: boolean;
  readonly addLetter?: (letter: DeadLetter) => Promise<void>;
}

function bench({ broken = false, addLetter }: Scene = {}) {
  const store = new ForgetfulStore();
  const clock = new ManualClock();
  const acks: [id: string, outcome: AckOutcome][] = [];
  const orphans: boolean[] = [];
  const letters: DeadLetter[] = [];
  const delays: unknown[] = [];
  const settler = createSettler({
    store,
    clock,
    absences: new Absences(clock),
    random: () => 1,
    journal: {
      async final(_ask, orphan) {
        orphans.push(orphan === true);
        if (broken) throw new Error("ENOSPC");
      },
      ack: (id, outcome) => void acks.push([id, outcome]),
    },
    deadLetters: { add: addLetter ?? (async (letter) => void letters.push(letter)) },
    onSettled: () => {},
    onDelay: (error) => void delays.push(error),
    onUnrecorded: () => {},
  });
  return { store, clock, acks, orphans, letters, delays, settler };
}

test("retries back off to two seconds at most, and the delay is reported once", async () => {
  const { store, clock, delays, settler } = bench();
  store.away = true;
  await settler.settle(askOf(1));
  const triedAtMs: number[] = [];
  const startMs = clock.nowMs;
  for (let tries = store.asks.length; clock.nowMs - startMs < 20_000; tries = store.asks.length) {
    await clock.advance(50);
    if (store.asks.length > tries) triedAtMs.push(clock.nowMs - startMs);
  }
  const gaps = triedAtMs.map((ms, at) => ms - (triedAtMs[at - 1] ?? 0));
  assert.deepEqual(gaps.slice(0, 8), [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
  assert.ok(gaps.every((ms) => ms <= 2_000));
  assert.equal(delays.length, 1);
});

test("jitter shortens the pause between retries to half of it at least", async () => {
  const waits: number[] = [];
  const clock = new ManualClock();
  const after = clock.after.bind(clock);
  clock.after = (ms, task) => {
    waits.push(ms);
    return after(ms, task);
  };
  const store = new ForgetfulStore();
  store.away = true;
  const settler = createSettler({
    ...{ store, clock, random: () => 0, journal: { final: async () => {}, ack() {} } },
    ...{ deadLetters: { add: async () => {} }, onSettled() {}, onDelay() {}, onUnrecorded() {} },
  });
  void settler.settle(askOf(1));
  await turns(5);
  assert.ok(waits.includes(25), `${waits}`);
});

test("a charge without a journal is unrecorded until the store has it, and its client waits for the first try", async () => {
  const { store, clock, settler, acks } = bench({ broken: true });
  const answer = Promise.withResolvers<void>();
  const settle = store.settle.bind(store);
  store.settle = async (ask) => {
    await answer.promise;
    return settle(ask);
  };
  store.away = true;
  let mayEnd = false;
  void settler.settle(askOf(1)).then(() => {
    mayEnd = true;
  });
  await turns(5);
  assert.deepEqual([mayEnd, settler.unrecorded().map(({ requestId }) => requestId)], [false, [idOf(1)]]);
  answer.resolve();
  await turns(5);
  assert.deepEqual([mayEnd, settler.unrecorded().length, settler.pending()], [true, 1, 1]);
  store.away = false;
  await clock.advance(50);
  assert.deepEqual([settler.unrecorded(), settler.pending(), acks], [[], 0, [[idOf(1), "settled"]]]);
});

test("a client waits no longer than the first try when the store takes a charge without a journal at once", async () => {
  const { settler } = bench({ broken: true });
  let mayEnd = false;
  void settler.settle(askOf(1)).then(() => {
    mayEnd = true;
  });
  await turns(5);
  assert.deepEqual([mayEnd, settler.unrecorded()], [true, []]);
});

test('the ACK of a charge that the store refuses has the outcome "dead" and is written after the dead letter', async () => {
  const written = Promise.withResolvers<void>();
  const { store, acks, settler } = bench({ addLetter: () => written.promise });
  store.settled.set(idOf(1), askOf(1, 5));
  await settler.settle(askOf(1));
  await turns(5);
  assert.deepEqual(acks, [], "the dead letter is not on the disk yet");
  written.resolve();
  await turns(5);
  assert.deepEqual(acks, [[idOf(1), "dead"]]);
});

test("a dead letter that cannot be written leaves its charge in the journal for the next start, and the charge is not retried", async () => {
  const { store, clock, acks, delays, settler } = bench({ addLetter: () => Promise.reject(new Error("EIO")) });
  store.settled.set(idOf(1), askOf(1, 5));
  await settler.settle(askOf(1));
  await turns(5);
  for (let second = 0; second < 5; second++) await clock.advance(1_000);
  assert.deepEqual([acks, store.asks.length, delays.length, settler.pending()], [[], 1, 1, 0]);
});

test("a charge to a missing account is retried for a while before it becomes a dead letter", async () => {
  const { store, clock, letters, settler } = bench();
  store.missing.add(askOf(1).tag);
  await settler.settle(askOf(1));
  for (let second = 0; second < 300; second++) await clock.advance(1_000);
  assert.deepEqual([letters, settler.pending()], [[], 1]);
  store.missing.clear();
  await clock.advance(2_000);
  assert.deepEqual([letters, settler.pending(), store.settled.size], [[], 0, 1]);
});

test("an account is unsettled while a charge to it is retried, and other accounts are not affected", async () => {
  const { store, clock, settler } = bench();
  store.broken.add(askOf(3).tag);
  await settler.settle(askOf(3));
  await settler.settle(askOf(1));
  await turns(5);
  assert.equal(settler.unsettled(askOf(1).tag), undefined);
  let answered = false;
  void settler.unsettled(askOf(3).tag)?.then(() => {
    answered = true;
  });
  let drained = false;
  void settler.drain(60_000).then(() => {
    drained = true;
  });
  await settler.settle(askOf(2));
  await turns(5);
  assert.deepEqual([answered, drained], [false, false]);
  store.broken.clear();
  await clock.advance(50);
  assert.deepEqual([answered, drained, settler.unsettled(askOf(3).tag)], [true, true, undefined]);
});

test("recovery does not wait for a charge that the store refuses, waits while the store is unreachable, and counts both as unsettled", async () => {
  for (const final of [true, false]) {
    const { store, clock, orphans, settler } = bench();
    const passed = { refused: false, away: false };
    store.broken.add(askOf(3).tag);
    void settler.resume({ ask: askOf(3), final, orphan: false }).passed.then(() => {
      passed.refused = true;
    });
    await turns(5);
    assert.ok(passed.refused);
    store.away = true;
    void settler.resume({ ask: askOf(1), final, orphan: false }).passed.then(() => {
      passed.away = true;
    });
    await turns(5);
    assert.equal(passed.away, false);
    assert.deepEqual([settler.pending(), settler.unsettled(askOf(1).tag) !== undefined], [2, true]);
    store.away = false;
    await clock.advance(50);
    assert.ok(passed.away);
    // The FINAL that is written here is that of an orphan.
    assert.deepEqual(orphans, final ? [] : [true, true]);
  }
});

test("an orphan's mismatch is no dead letter even if its FINAL is in the journal, and a broken journal does not hold recovery up", async () => {
  const { store, letters, settler } = bench();
  store.settled.set(idOf(1), askOf(1, 5));
  await settler.resume({ ask: askOf(1), final: true, orphan: true }).answered;
  assert.deepEqual(letters, []);
  const scene = bench({ broken: true });
  scene.store.broken.add(askOf(3).tag);
  let passed = false;
  void scene.settler.resume({ ask: askOf(3), final: false, orphan: false }).passed.then(() => {
    passed = true;
  });
  await turns(5);
  assert.ok(passed);
});

test("the end of the answer is sent after the turn in which the charge was sent", async () => {
  const { store, settler } = bench();
  const order: string[] = [];
  const settle = store.settle.bind(store);
  store.settle = (ask) => {
    // The store's client does the same: what is written in a turn is sent in its check phase.
    setImmediate(() => order.push("wire"));
    return settle(ask);
  };
  await settler.settle(askOf(1)).then(() => order.push("end"));
  assert.deepEqual(order, ["wire", "end"]);
});

test("an unavailable store is retried and never makes a dead letter, whether or not the outcome is known", async () => {
  const { store, letters, clock, settler } = bench();
  const settle = store.settle.bind(store);
  let tries = 0;
  store.settle = async (ask) => {
    if (++tries < 3) throw new StoreError("unavailable", "away", { outcome: tries === 1 ? "unknown" : "unsent" });
    return settle(ask);
  };
  await settler.settle(askOf(1));
  await clock.advance(50);
  await clock.advance(100);
  assert.deepEqual([letters, store.settled.size], [[], 1]);
});

test("an account is unsettled until each of its charges is answered, and another account is not", async () => {
  const { store, settler } = bench();
  const answers = new Map([3, 6].map((number) => [idOf(number), Promise.withResolvers<void>()]));
  const settle = store.settle.bind(store);
  store.settle = async (ask) => {
    await answers.get(ask.requestId)?.promise;
    return settle(ask);
  };
  const { tag } = askOf(3);
  assert.equal(settler.unsettled(tag), undefined);
  await Promise.all([3, 6].map((number) => settler.settle(askOf(number))));
  let isSettled = false;
  void settler.unsettled(tag)?.then(() => {
    isSettled = true;
  });
  assert.equal(settler.unsettled(askOf(1).tag), undefined);
  answers.get(idOf(6))?.resolve();
  await turns(5);
  assert.deepEqual([isSettled, settler.pending(), store.settled.has(idOf(6))], [false, 1, true]);
  answers.get(idOf(3))?.resolve();
  await turns(5);
  assert.deepEqual([isSettled, settler.pending(), settler.unsettled(tag)], [true, 0, undefined]);
});
