/**
 * docs/decisions/references-carry-what-they-name.md, *A stream that broke off*: references to items of a stream that
 * broke off are left out; references that may mean something else are refused.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { KeptItems, SealedIds } from "../../../../src/convert/responses/references/sealing.ts";
import { CALL, contextOf, type Item, MESSAGE, OWN, placed, refer } from "./rig.ts";

const user = { role: "user", content: "x" };
const lost = [refer("rs_abc"), refer("msg_def")];
const RESULT = { type: "function_call_output", call_id: "call_1", output: "fine" };

/** References to items, and to the carrier that holds them. */
function carried(...items: Item[]): readonly Item[] {
  const kept = new KeptItems();
  for (const item of items) kept.add(item);
  return [...items.map(({ id }) => refer(id)), refer(kept.carrier(OWN)?.id)];
}

test("one step without a carrier is left out wherever it is, and the rest stays in place", async () => {
  assert.deepEqual(await placed([user, ...lost, user]), [user, user]);
  assert.deepEqual(await placed([user, ...carried(MESSAGE), user, ...lost, user]), [user, MESSAGE, user, user]);
  assert.deepEqual(await placed([user, ...lost, user, ...carried(MESSAGE), user]), [user, user, MESSAGE, user]);
  const call = { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" };
  assert.deepEqual(await placed([user, refer("rs_abc"), call, RESULT, user]), [user, call, RESULT, user]);
});

test("a step without a carrier is left out directly before a step with one", async () => {
  assert.deepEqual(await placed([user, ...lost, ...carried(MESSAGE), user]), [user, MESSAGE, user]);
});

test("more steps without a carrier than the conversation can explain are refused", async () => {
  assert.equal(await placed([user, ...lost, user, ...lost, user]), "as it is");
  const known = [user, ...carried(MESSAGE), user, ...carried(CALL), RESULT];
  const [, , ...input] = (await placed([...known, user, ...lost, user, ...lost, user, ...lost, user])) as Item[];
  assert.equal(input.length, 7, "three of five");
  assert.equal(await placed([...known, ...[1, 2, 3, 4].flatMap(() => [user, ...lost])]), "as it is");
});

test("a call, an invented id and a seal that does not open are refused with everything next to them", async () => {
  const strange = new KeptItems();
  strange.add(MESSAGE);
  const foreign = strange.carrier(contextOf("another"));
  for (const one of [
    refer("fc_abc"),
    refer("item_abc"),
    refer(`msg_${"x".repeat(129)}`),
    refer(""),
    refer(7),
    refer(foreign?.id),
    foreign,
  ]) {
    assert.equal(await placed([user, ...lost, one, user]), "as it is", JSON.stringify(one));
  }
});

test("references at the end of the input are refused", async () => {
  assert.equal(await placed(lost), "as it is");
  assert.equal(await placed([user, ...carried(MESSAGE), user, ...lost]), "as it is");
});

test("nothing is left out of a reply that was completed: an item without a sealed id was too large", async () => {
  const own = refer(new SealedIds(OWN).of("msg_1", MESSAGE));
  assert.equal(await placed([user, own, refer("msg_large"), user]), "as it is");
});

test("the carrier of a failed stream restores its complete items and marks the incomplete ones", async () => {
  const kept = new KeptItems();
  for (const id of ["msg_1", "rs_2", "msg_3"]) kept.begin(id);
  kept.add(MESSAGE);
  kept.breakOff();
  const carrier = refer(kept.carrier(OWN)?.id);
  const input = [user, refer("msg_1"), refer("rs_2"), refer("msg_3"), carrier, user];
  assert.deepEqual(await placed(input), [user, MESSAGE, user]);
});
