/**
 * docs/decisions/references-carry-what-they-name.md: the limits on the size of an id, on all ids of a reply together,
 * and on what a request may open.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { withItemsInPlace } from "../../../../src/convert/responses/references/opening.ts";
import { KeptItems, SealedIds, withSealedIds } from "../../../../src/convert/responses/references/sealing.ts";
import { isRefusal, refusal } from "../../../../src/values/errors.ts";
import { CALL, MESSAGE, OWN, placed, refer } from "./rig.ts";

/** Text that hardly compresses. */
const noise = (bytes: number) => randomBytes(bytes).toString("base64");
const saying = (text: string) => ({ ...MESSAGE, content: [{ type: "output_text", text }] });

test("an item that is too long keeps its short id, and the next item is sealed", () => {
  const ids = new SealedIds(OWN);
  assert.equal(ids.of("msg_1", saying(noise(120_000))), undefined, "its id would be too long");
  assert.equal(ids.of("msg_1", saying("a".repeat(600_000))), undefined, "it would be too much to open");
  assert.match(ids.of("fc_1", CALL) ?? "", /^fc_gw1\./);
});

test("an item that is too long is recognized without being serialized", () => {
  let written = 0;
  const counted = { text: "\n".repeat(600_000), toJSON: () => ++written };
  const long = { ...MESSAGE, content: [counted] };
  assert.equal(new SealedIds(OWN).of("msg_1", long), undefined);
  const kept = new KeptItems();
  kept.add(long);
  assert.ok(kept.carrier(OWN));
  assert.equal(written, 0);
});

test("all ids of a reply together have a limit", () => {
  const ids = new SealedIds(OWN);
  const made = Array.from({ length: 8 }, () => ids.of("msg_1", saying(noise(40_000))));
  const lengths = made.flatMap((id) => (id === undefined ? [] : [id.length]));
  assert.ok(lengths.length >= 3 && lengths.length < 8, `${lengths.length} of 8`);
  assert.ok(lengths.reduce((sum, one) => sum + one, 0) <= 256 * 1024 + 8 * 16);
});

test("in a reply of many items only those that get a sealed id are processed", () => {
  const output = Array.from({ length: 3_000 }, (_, at) => ({ ...CALL, id: `fc_${at}` }));
  const json = { id: "resp_1", output };
  let kept = 0;
  const keep = (item: object) => {
    kept++;
    return { ...item };
  };
  const body = withSealedIds(Buffer.from(JSON.stringify(json)), json, { keep, context: OWN });
  const ids = (JSON.parse(Buffer.from(body).toString()) as typeof json).output.map(({ id }) => id);
  assert.equal(ids.length, 3_000);
  assert.equal(ids.filter((id) => id.startsWith("fc_gw1.")).length, 512);
  assert.deepEqual(
    ids.slice(512),
    output.slice(512).map(({ id }) => id),
    "the others keep their own",
  );
  assert.equal(kept, 512);
});

test("a stream that is too large ends with an empty carrier", async () => {
  const assertEmpty = async (kept: KeptItems, why: string): Promise<void> => {
    const carrier = kept.carrier(OWN);
    assert.ok(carrier && String(carrier.id).length < 80, why);
    assert.equal(
      await placed([refer("msg_1"), refer(carrier.id)]),
      "as it is",
      "an item that the carrier does not contain is refused",
    );
  };

  const long = new KeptItems();
  for (let i = 0; i < 8; i++) long.add(saying(noise(40_000)));
  await assertEmpty(long, "its id would be too long");
  const large = new KeptItems();
  for (let i = 0; i < 8; i++) large.add(saying("a".repeat(100_000)));
  await assertEmpty(large, "it would be too much to open");
  large.add(CALL);
  await assertEmpty(large, "a part of the items is not carried either");
  assert.equal(new KeptItems().carrier(OWN), undefined, "an empty stream");
});

test("an item nested too deep to be serialized is not sealed", () => {
  const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`);
  assert.equal(new SealedIds(OWN).of("x_1", { ...CALL, deep }), undefined);
  const kept = new KeptItems();
  kept.add({ ...CALL, deep });
  assert.ok(String(kept.carrier(OWN)?.id).length < 80, "it carries nothing");
});

test("compressed items count with their decompressed size", async () => {
  const id = new SealedIds(OWN).of("msg_1", saying("a".repeat(500_000)));
  assert.ok(id && id.length < 8_000, "it compresses well");
  assert.notEqual(await placed([refer(id)]), "too_large");
  assert.equal(await placed([refer(id), refer(id), refer(id)]), "too_large", "one id named often");
  const others = ["b", "c", "d"].map((letter) => new SealedIds(OWN).of("msg_1", saying(letter.repeat(500_000))));
  assert.equal(await placed(others.map(refer)), "too_large", "many ids");
  const kept = new KeptItems();
  kept.add(saying("a".repeat(500_000)));
  const carriers = Array.from({ length: 3 }, () => kept.carrier(OWN)?.id);
  assert.equal(await placed(carriers.map(refer)), "too_large", "items to which nothing refers");
});

for (const [what, chars, times, asked] of [
  ["one large item", 90_000, 1, 1],
  ["a small item named often", 5_000, 20, 1],
  ["small items", 5_000, 10, 0],
] as const) {
  test(`an unproven key is checked before its items are expanded beyond its limit: ${what}`, async () => {
    const id = new SealedIds(OWN).of("msg_1", saying("a".repeat(chars)));
    const json = { model: "m", input: Array.from({ length: times }, () => refer(id)) };
    const body = Buffer.from(JSON.stringify(json));
    for (const answer of [refusal("unknown_key"), undefined]) {
      let looks = 0;
      const gate = async () => {
        looks++;
        return answer;
      };
      const whole = await withItemsInPlace({ body, json }, OWN, {
        bytesMax: 1_000_000,
        unproven: { bytesMax: 65_536, gate },
      });
      assert.equal(looks, asked);
      assert.equal(isRefusal(whole), asked === 1 && answer !== undefined);
      if (typeof whole === "object" && "body" in whole) assert.ok(whole.body.length > chars * times);
    }
  });
}

test("the key is not checked if the items are too large for any key", async () => {
  const id = new SealedIds(OWN).of("msg_1", saying("a".repeat(5_000)));
  const json = { model: "m", input: [refer(id)] };
  const unproven = { bytesMax: 65_536, gate: () => assert.fail("asked") };
  const body = Buffer.from(JSON.stringify(json));
  assert.equal(await withItemsInPlace({ body, json }, OWN, { bytesMax: 1_000, unproven }), "too_large");
});

test("an item that is named often is serialized once, and the work yields between the items", async (t) => {
  const id = new SealedIds(OWN).of("msg_1", saying("a".repeat(9_000)));
  const json = { model: "m", input: Array.from({ length: 64 }, () => refer(id)) };
  const body = Buffer.from(JSON.stringify(json));
  const written = t.mock.method(JSON, "stringify");
  let rests = 0;
  const rest = async () => {
    rests++;
  };
  const whole = await withItemsInPlace({ body, json }, OWN, { bytesMax: 1_000_000 }, rest);
  assert.ok(typeof whole === "object" && "body" in whole);
  assert.equal(JSON.parse(Buffer.from(whole.body).toString()).input.length, 64);
  assert.equal(written.mock.callCount(), 1);
  assert.ok(rests >= 3 * 64, "it yields while items are opened, measured and inserted");
});
