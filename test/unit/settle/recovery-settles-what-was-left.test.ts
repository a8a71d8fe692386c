/**
 * Recovery at the start: orphans are charged from their last checkpoint, charges without an ACK once, and refused ones become
 * dead letters.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { Absences } from "../../../src/settle/recovery/absences.ts";
import { recover } from "../../../src/settle/recovery/charging.ts";
import { createSettler } from "../../../src/settle/settler.ts";
import { StoreError } from "../../../src/store/contract.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { askOf, ForgetfulStore, HurriedClock, idOf, openOn, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const OTHER = "TAGOTHER00" as AccountTag;

/** Unless a test says otherwise, absences are accepted at once, and one server has all accounts. */
interface Circumstances {
  readonly absences?: (clock: HurriedClock) => Absences;
  readonly shardOf?: (tag: AccountTag) => string;
}

async function recovered(
  disk: SimDisk,
  store: Pick<ForgetfulStore, "settle">,
  { absences, shardOf = () => "" }: Circumstances = {},
) {
  const clock = new HurriedClock();
  const opened = await openOn(disk, clock);
  const reasons: string[] = [];
  const deadLetters = await openDeadLetters(disk, clock, ({ reason }) => void reasons.push(reason));
  const settler = createSettler({
    store,
    journal: opened.journal,
    deadLetters,
    clock,
    ...(absences && { absences: absences(clock) }),
    onSettled: () => {},
    onDelay: () => {},
    onUnrecorded: () => {},
  });
  await recover(opened.leftovers, settler, shardOf);
  const { unsettled } = opened.journal.health();
  await opened.journal.close();
  return { reasons, unsettled, leftovers: opened.leftovers };
}

/** The disk of a process that was killed with these requests in flight. */
async function killed(work: (journal: Awaited<ReturnType<typeof openOn>>["journal"]) => Promise<void>) {
  const disk = new SimDisk();
  const clock = new HurriedClock();
  const { journal } = await openOn(disk, clock);
  await work(journal);
  clock.stop();
  return disk.afterKill();
}

test("an orphan is charged for its last checkpoint; without one its hold is given back", async () => {
  const disk = await killed(async (journal) => {
    for (const number of [1, 2]) journal.open({ voided: voidOf(number), hold: nanoUsd(9n) });
    journal.checkpoint(askOf(1, 10));
    journal.checkpoint(askOf(1, 20));
  });
  const store = new ForgetfulStore();
  const { unsettled } = await recovered(disk, store);
  assert.equal(store.settled.get(idOf(1))?.amount, 20n);
  assert.deepEqual(store.settled.get(idOf(2)), voidOf(2));
  assert.equal(unsettled, 0);
  assert.equal((await recovered(disk, store)).leftovers.length, 0);
});

test("a charge without an ACK is settled once, whether or not the store had it", async () => {
  const disk = await killed(async (journal) => {
    for (const number of [1, 2]) {
      journal.open({ voided: voidOf(number), hold: nanoUsd(9n) });
      journal.checkpoint(askOf(number, 1));
      await journal.final(askOf(number));
    }
    journal.checkpoint(askOf(1, 2));
  });
  const store = new ForgetfulStore();
  await store.settle(askOf(1));
  const { reasons, unsettled } = await recovered(disk, store);
  assert.deepEqual([reasons, unsettled], [[], 0]);
  assert.deepEqual(
    [...store.settled.values()].map(({ amount }) => amount),
    [askOf(1).amount, askOf(2).amount],
  );
});

test("an orphan that the store has with its real charge is no dead letter", async () => {
  const disk = await killed(async (journal) => {
    journal.open({ voided: voidOf(1), hold: nanoUsd(9n) });
    journal.checkpoint(askOf(1, 10));
  });
  const store = new ForgetfulStore();
  await store.settle(askOf(1, 55));
  const { reasons, unsettled } = await recovered(disk, store);
  assert.deepEqual([reasons, unsettled], [[], 0]);
  assert.equal(store.settled.get(idOf(1))?.amount, 55n);
});

test("a charge that the store refuses becomes a dead letter, and one without an answer is retried until there is one", async () => {
  const disk = await killed(async (journal) => {
    for (const number of [1, 2, 3]) await journal.final(askOf(number));
  });
  const store = new ForgetfulStore();
  await store.settle(askOf(1, 5));
  store.missing.add(askOf(2).tag);
  let tries = 0;
  const moody = {
    settle(ask: SettleAsk) {
      store.away = ask.requestId === idOf(3) && ++tries < 4;
      return store.settle(ask);
    },
  };
  const { reasons, unsettled } = await recovered(disk, moody);
  assert.deepEqual(reasons.sort(), ["mismatch", "unknown_account"]);
  assert.equal(unsettled, 0);
  assert.equal(store.settled.get(idOf(3))?.amount, askOf(3).amount);
  assert.equal((await recovered(disk, store)).leftovers.length, 0);
});

test("a defect becomes one dead letter and does not hold up its account", async () => {
  const disk = await killed((journal) => journal.final(askOf(1)));
  const { reasons, unsettled } = await recovered(disk, {
    settle: async () => {
      throw new RangeError("a memo is short");
    },
  });
  assert.deepEqual([reasons, unsettled], [["defect"], 0]);
});

test("charges that the store refuses hold up no other charge of the account, and are settled once the store takes them", async () => {
  const disk = await killed(async (journal) => {
    // More than are in flight at once, of one account and before all its other charges.
    for (let number = 1; number <= 50; number++) await journal.final(askOf(3 * number));
  });
  const store = new ForgetfulStore();
  const last = idOf(150);
  const moody = {
    async settle(ask: SettleAsk) {
      if (!store.settled.has(last) && ask.requestId !== last) {
        throw new StoreError("unavailable", "WRONGTYPE", { outcome: "refused" });
      }
      return store.settle(ask);
    },
  };
  const { reasons, unsettled } = await recovered(disk, moody);
  assert.deepEqual([reasons, unsettled, store.settled.size], [[], 0, 50]);
});

test("charges to a missing account hold up no other charge while the absence is in doubt", async () => {
  const disk = await killed(async (journal) => {
    for (let number = 1; number <= 50; number++) await journal.final(askOf(3 * number));
    await journal.final({ ...askOf(1), tag: OTHER });
  });
  const store = new ForgetfulStore();
  store.missing.add(askOf(3).tag);
  const moody = {
    settle(ask: SettleAsk) {
      if (ask.tag === OTHER) store.missing.clear();
      return store.settle(ask);
    },
  };
  const { reasons, unsettled } = await recovered(disk, moody, { absences: (clock) => new Absences(clock) });
  assert.deepEqual([reasons, unsettled, store.settled.size], [[], 0, 51]);
});

test("a server of the store that does not answer holds up no charge to another server", async () => {
  const disk = await killed(async (journal) => {
    for (let number = 1; number <= 100; number++) await journal.final(askOf(3 * number));
    await journal.final(askOf(1));
  });
  const store = new ForgetfulStore();
  const moody = {
    async settle(ask: SettleAsk) {
      if (ask.tag !== askOf(1).tag && !store.settled.has(idOf(1))) throw new StoreError("unavailable", "away");
      return store.settle(ask);
    },
  };
  const { unsettled } = await recovered(disk, moody, { shardOf: (tag) => tag });
  assert.deepEqual([unsettled, store.settled.size], [0, 101]);
});
