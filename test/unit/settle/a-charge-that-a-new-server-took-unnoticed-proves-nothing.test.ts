/**
 * docs/failure-model.md invariant 36: when another server answers, a charge that it has proves that it also has the older
 * ones, but only if the previous server is known to have answered after that charge. Otherwise the new server may have
 * taken it before the change was noticed, and a charge that the change has lost would never be sent again.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { createVerifier } from "../../../src/settle/journal/verify.ts";
import { askOf, ForgetfulStore, idOf, ManualClock, openOn } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

/** Longer than the tolerance for the order of records, shorter than the age at which each charge is verified anyway. */
const A_WHILE_MS = 6_000;

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

test("what was lost in a failover is restored although the new server took charges before it was noticed", async () => {
  const clock = new ManualClock();
  const disk = new SimDisk();
  const store = new ForgetfulStore();
  const { journal, log } = await openOn(disk, clock);
  let server = "one";
  const restored: string[] = [];
  const verifier = createVerifier({
    log,
    store,
    clock,
    deadLetters: await openDeadLetters(disk, clock, () => {}),
    storeIdentity: async () => server,
    onRestored: ({ requestId }) => void restored.push(requestId),
    onIdentity: () => {},
    onError: assert.ifError,
  });
  const charge = async (number: number) => {
    const final = journal.final(askOf(number));
    await clock.advance(2);
    await final;
    await store.settle(askOf(number));
    journal.ack(idOf(number), "settled");
    await clock.advance(50);
  };
  for (const number of numbers(1, 60)) await charge(number);
  await verifier.tick();
  const lost = numbers(41, 60).map(idOf);
  for (const id of lost) store.settled.delete(id);
  server = "two";
  for (const number of numbers(61, 120)) await charge(number);
  await clock.advance(A_WHILE_MS);
  await verifier.tick();
  assert.deepEqual(restored.toSorted(), lost);
  await journal.close();
});
