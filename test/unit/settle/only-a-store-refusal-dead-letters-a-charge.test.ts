/**
 * docs/failure-model.md invariant 33: a charge that the store does not prove to have becomes a dead letter only when the store
 * itself has refused it for long enough. An unreachable store, another server or a full disk is no refusal.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { DeadLetter } from "../../../src/settle/journal/dead-letters.ts";
import { encodeCharge } from "../../../src/settle/journal/payload.ts";
import { createResend, type ResendParts } from "../../../src/settle/journal/resend.ts";
import type { PlacedCharge } from "../../../src/settle/journal/set-aside.ts";
import { Absences, DoubtfulError } from "../../../src/settle/recovery/absences.ts";
import { StoreError } from "../../../src/store/contract.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { askOf, ForgetfulStore, idOf, ManualClock, turns, voidOf } from "./rig.ts";

const placed = (ask: SettleAsk): PlacedCharge => {
  const { requestId, tag, amount } = ask;
  return { charge: { requestId, tag, amount, record: encodeCharge(ask, {}) }, segment: 1 };
};

function bench(changes: Partial<ResendParts> = {}) {
  const store = new ForgetfulStore();
  const clock = new ManualClock();
  const absences = new Absences(clock);
  const letters: DeadLetter[] = [];
  const resend = createResend({
    store,
    absences,
    deadLetters: { add: async (letter) => void letters.push(letter) },
    isFollowed: async () => true,
    onRestored: () => {},
    ...changes,
  });
  return { store, clock, absences, letters, resend };
}

const away = () => Promise.reject(new StoreError("unavailable", "away"));

test("a store that is unreachable at the lookup or the settlement ends the round, and nothing is dead-lettered or set aside", async () => {
  const atLook = bench();
  atLook.store.away = true;
  await assert.rejects(atLook.resend.charges([placed(askOf(1))]), /away/);
  assert.deepEqual(atLook.store.asks, [], "the charge is not sent without a lookup");
  const store = { settledAmounts: async () => [undefined], settle: away };
  const asides: unknown[] = [];
  const { resend, letters } = bench({ store, onAside: (reason) => void asides.push(reason) });
  await assert.rejects(resend.charges([placed(askOf(1))]), /away/);
  assert.deepEqual([letters, asides], [[], []]);
});

test("a write that fails because the store is unreachable ends the round; one that may yet succeed is set aside", async () => {
  let error: StoreError = new StoreError("unavailable", "away");
  const { resend } = bench({
    async applyAdmin() {
      throw error;
    },
  });
  const record = { kind: "credit", id: "pay", payload: {} } as const;
  await assert.rejects(resend.write(record), /away/);
  error = new DoubtfulError("no such account");
  assert.equal(await resend.write(record), false);
});

test("an account that is missing on a different server does not count as missing", async () => {
  const { store, clock, letters, resend } = bench({ isFollowed: async () => false });
  store.missing.add(askOf(1).tag);
  for (let minute = 0; minute < 20; minute++) {
    await assert.rejects(resend.charges([placed(askOf(1))]), /another server/);
    await clock.advance(60_000);
  }
  assert.deepEqual(letters, []);
});

test("a charge is released only once its dead letter is on the disk, and holds up no other meanwhile", async () => {
  const { store, resend } = bench({ deadLetters: { add: () => Promise.reject(new Error("ENOSPC")) } });
  store.settled.set(idOf(1), askOf(1, 5));
  const [stuck, other] = [placed(askOf(1)), placed(askOf(4))];
  assert.deepEqual(await resend.charges([stuck, other]), [stuck]);
  assert.ok(store.settled.has(idOf(4)));
});

test("a charge that fails the store's own checks is dead-lettered as a defect and holds up no other", async () => {
  const store = new ForgetfulStore();
  const settle = store.settle.bind(store);
  store.settle = async (ask) => {
    if (ask.requestId === idOf(1)) throw new RangeError("a memo is short");
    return settle(ask);
  };
  const { letters, resend } = bench({ store });
  assert.deepEqual(await resend.charges([placed(askOf(1)), placed(askOf(4))]), []);
  assert.deepEqual(
    letters.map(({ reason, ask }) => [reason, ask.requestId]),
    [["defect", idOf(1)]],
  );
  assert.ok(store.settled.has(idOf(4)));
});

test("only a duplicate proves what the store has: a voided hold or a missing account does not", async () => {
  const { store, resend } = bench();
  store.settled.set(idOf(4), askOf(4));
  store.missing.add(askOf(2).tag);
  assert.equal(await resend.charge(placed(voidOf(1))), "nothing");
  assert.equal(await resend.charge(placed(askOf(4))), "present");
  assert.ok(["nothing", "aside"].includes(await resend.charge(placed(askOf(2)))));
  assert.equal(await resend.charge(placed(askOf(7))), "restored");
});

test("a hold that was given back is not sent again", async () => {
  const { store, resend } = bench();
  assert.deepEqual(await resend.charges([placed(voidOf(1))]), []);
  assert.deepEqual([store.looked, store.asks], [[idOf(1)], []]);
});

test("the doubt about an account restarts when a charge of it is found", async () => {
  const { store, absences, clock, resend } = bench();
  const { tag } = askOf(1);
  const looks = async (count: number) => {
    for (let look = 0; look < count; look++) {
      assert.throws(() => absences.doubt(tag, "not there"), DoubtfulError);
      await clock.advance(60_000);
    }
  };
  await looks(10);
  await store.settle(askOf(1));
  await resend.charges([placed(askOf(1))]);
  await looks(10);
});

test("at most 16 accounts are looked up at once, and a round ends only after all lookups that it has started", async () => {
  let [now, most] = [0, 0];
  const release = Promise.withResolvers<void>();
  const store = {
    settle: away,
    async settledAmounts(_tag: AccountTag, ids: readonly string[]) {
      most = Math.max(most, ++now);
      if (ids[0] === idOf(1)) throw new StoreError("unavailable", "away");
      await release.promise;
      now--;
      return ids.map(() => askOf(1).amount);
    },
  };
  const many = Array.from({ length: 40 }, (_, at) => ({ ...askOf(at + 1), tag: `TAG${at}` as AccountTag }));
  let ended = false;
  const round = assert.rejects(bench({ store }).resend.charges(many.map(placed)), /away/).then(() => {
    ended = true;
  });
  await turns(5);
  assert.deepEqual([most, ended], [16, false]);
  release.resolve();
  await round;
  assert.equal(most, 16);
});
