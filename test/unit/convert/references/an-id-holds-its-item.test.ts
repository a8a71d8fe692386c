/** docs/decisions/references-carry-what-they-name.md: what is put into an id comes back from it, and only for its account. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { withItemsInPlace } from "../../../../src/convert/responses/references/opening.ts";
import {
  KeptItems,
  keptNative,
  SealedIds,
  withSealedIds,
} from "../../../../src/convert/responses/references/sealing.ts";
import { openReasoning, originOf } from "../../../../src/convert/rules/envelope.ts";
import { createSealing } from "../../../../src/request/sealing.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { routeTo } from "../request/translate.ts";
import { CALL, contextOf, type Item, MESSAGE, OWN, placed, refer } from "./rig.ts";

const idOf = (item: Item, context = OWN) => new SealedIds(context).of(item.id, item) ?? "";

function carrierOf(...items: readonly Item[]): Item {
  const kept = new KeptItems();
  for (const item of items) kept.add(item);
  return kept.carrier(OWN) ?? {};
}

test("a whole reply's id is its item, of the same kind", async () => {
  const id = idOf(MESSAGE);
  assert.match(id, /^msg_gw1\.[A-Za-z0-9_-]+$/);
  assert.deepEqual(await placed(["hi", refer(id), { role: "user", content: "x" }]), [
    "hi",
    MESSAGE,
    { role: "user", content: "x" },
  ]);
});

test("the type of a reference may be absent", async () => {
  assert.deepEqual(await placed([{ id: idOf(CALL) }]), [CALL]);
});

test("a stream's short ids are found in the item that carries them, wherever it stands, and it is gone", async () => {
  const carrier = carrierOf(MESSAGE, CALL);
  assert.deepEqual([carrier.type, carrier.summary], ["reasoning", []]);
  const input = [refer("msg_1"), refer("fc_1"), refer(carrier.id), { type: "function_call_output", call_id: "call_1" }];
  const expected = [MESSAGE, CALL, { type: "function_call_output", call_id: "call_1" }];
  assert.deepEqual(await placed(input), expected);
  assert.deepEqual(
    await placed([carrier, ...input.slice(0, 2), ...input.slice(3)]),
    expected,
    "brought back as it was",
  );
});

test("servers that number their items anew in each reply are understood", async () => {
  const [first, second] = ["one", "two"].map((text) => ({ ...MESSAGE, content: [{ type: "output_text", text }] }));
  const [a, b] = [carrierOf(first as Item), carrierOf(second as Item)];
  const input = [refer("msg_1"), refer(a.id), { role: "user", content: "x" }, refer("msg_1"), refer(b.id)];
  assert.deepEqual(await placed(input), [first, { role: "user", content: "x" }, second]);
  assert.deepEqual(await placed([refer(a.id), refer("msg_1")]), [first], "what carries it may stand before it");
});

test("a reference whose carrier is gone gets nothing of another reply", async () => {
  const [first, second] = ["one", "two"].map((text) => ({ ...MESSAGE, content: [{ type: "output_text", text }] }));
  const [a, b] = [carrierOf(first as Item), carrierOf(second as Item)];
  const user = { role: "user", content: "x" };
  const later = [refer("msg_1"), refer(b.id)];
  assert.deepEqual(await placed([refer("msg_1"), user, ...later, user]), [user, second, user], "left out");
  const early = [user, refer(a.id), user, refer(b.id), user, refer("msg_1"), user];
  assert.deepEqual(await placed(early), [user, user, user, user], "two have it");
  const other = carrierOf(CALL);
  assert.deepEqual(
    await placed([user, refer("msg_1"), user, refer("fc_1"), refer(other.id), user, refer(a.id)]),
    [user, first, user, CALL, user],
    "one alone has it",
  );
});

test("items of one reply that have the same id come back in their order", async () => {
  const items = ["one", "two"].map((text) => ({ ...MESSAGE, content: [{ type: "output_text", text }] }));
  assert.deepEqual(await placed([refer("msg_1"), refer("msg_1"), refer(carrierOf(...items).id)]), items);
});

test("an approval names the item that asks for it by its short id", async () => {
  const asks = { id: "mcpr_1", type: "mcp_approval_request", name: "delete", arguments: "{}", server_label: "files" };
  const answer = { type: "mcp_approval_response", approve: true, approval_request_id: idOf(asks) };
  assert.deepEqual(await placed([refer(idOf(asks)), answer]), [asks, { ...answer, approval_request_id: "mcpr_1" }]);
});

test("words that look like an id change nothing", async () => {
  for (const input of ["say msg_gw1.AAAA", [{ role: "user", content: "say msg_gw1.AAAA" }], []]) {
    const text = `{ "model":"m", "input" : ${JSON.stringify(input)} }`;
    const body = Buffer.from(text);
    const whole = await withItemsInPlace({ body, json: JSON.parse(text) }, OWN, { bytesMax: 1_000 });
    assert.ok(typeof whole === "object" && "body" in whole && whole.body === body);
  }
});

test("items that come back whole get their short ids again, for their servers know no other", async () => {
  const other = { ...MESSAGE, id: idOf(MESSAGE), content: "changed by its client" };
  assert.deepEqual(await placed([other]), [{ ...other, id: "msg_1" }]);
  const strange = { ...CALL, id: idOf(CALL, contextOf("another")) };
  const { id: _, ...nameless } = strange;
  assert.deepEqual(await placed([strange]), [nameless], "an id that cannot be opened is none");
});

test("reasoning of which only a sealed id is left is left out where that does not open: after a change of keys, of another account", async () => {
  const strange = new KeptItems();
  strange.add(MESSAGE);
  const carrier = strange.carrier(contextOf("another"));
  assert.deepEqual(await placed([MESSAGE, carrier, CALL]), [MESSAGE, CALL]);
  const { id: _, ...readable }: Item = { ...carrier, encrypted_content: "opaque" };
  assert.deepEqual(await placed([{ ...carrier, encrypted_content: "opaque" }]), [readable], "its server may read it");
});

test("what is not of this account, was changed, or is made up stays a reference, and so does all that is beside it", async () => {
  const id = idOf(MESSAGE);
  const at = id.length - 8;
  const flipped = `${id.slice(0, at)}${id[at] === "A" ? "B" : "A"}${id.slice(at + 1)}`;
  const another = idOf(MESSAGE, contextOf("another"));
  const otherKey = createSealing([new Secret("a-key-of-another-gateway-of-others")]);
  const elsewhere = idOf(MESSAGE, contextOf("own", otherKey));
  for (const bad of [another, flipped, elsewhere, "msg_1", "msg_gw1.", `msg_${"gw1.A".repeat(9)}`, `${id}A`, ""]) {
    assert.equal(await placed([refer(id), refer(bad)]), "as it is", bad.slice(0, 40));
  }
});

test("a sealed reasoning is no item, and the other way round", async () => {
  const reasoning = OWN.seal(Buffer.from("{}"), "reasoning:messages");
  assert.equal(await placed([refer(`rs_${reasoning}`)]), "as it is");
  const asSignature = idOf(MESSAGE).slice("msg_".length);
  assert.equal(openReasoning(asSignature, originOf(routeTo("messages")), OWN), undefined);
});

test("reasoning goes back to its own model as its server wrote it, and is left out where nobody could read it", async () => {
  const native = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "opaque" };
  const route = routeTo("responses");
  const [restored] = (await placed([refer(idOf(keptNative(native, route, OWN)))])) as Item[];
  assert.deepEqual(openReasoning(String(restored?.encrypted_content), originOf(route), OWN), [native]);
  const { encrypted_content: _, ...bare } = native;
  assert.deepEqual(await placed([MESSAGE, refer(idOf(keptNative(bare, route, OWN)))]), [MESSAGE]);
});

test("probabilities are not kept: no model reads them", async () => {
  const content = [{ type: "output_text", text: "a", annotations: [], logprobs: [{ token: "a", logprob: -1 }] }];
  const [kept] = (await placed([refer(idOf({ ...MESSAGE, content }))])) as Item[];
  assert.deepEqual(kept?.content, [{ type: "output_text", text: "a", annotations: [], logprobs: [] }]);
});

test("whatever is in the input, nothing throws, what is no reference keeps its words, and no sealed id is left", async () => {
  const ids = [
    idOf(MESSAGE),
    idOf(CALL),
    String(carrierOf(MESSAGE, CALL).id),
    "msg_1",
    "fc_1",
    "x",
    7,
    null,
    idOf(CALL, contextOf("another")),
  ];
  const member = fc.oneof(fc.constantFrom(...ids), fc.jsonValue({ maxDepth: 2 }));
  const item = fc.record(
    {
      id: member,
      type: fc.constantFrom("item_reference", "message", "reasoning", "function_call", null, 5, undefined),
      role: fc.constantFrom("user", undefined),
      content: fc.jsonValue({ maxDepth: 2 }),
      approval_request_id: member,
    },
    { requiredKeys: [] },
  );
  const input = fc.array(fc.oneof(item, fc.jsonValue({ maxDepth: 2 })), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(input, async (given) => {
      const said = JSON.parse(JSON.stringify(given)) as unknown[];
      const result = await placed(said);
      if (!Array.isArray(result)) return assert.equal(result, "as it is");
      for (const one of result as Item[]) {
        const id: unknown = one?.id;
        assert.ok(typeof id !== "string" || !/^[a-z]+_gw1\./.test(id), "an id of ours");
        assert.ok(one?.type !== "item_reference" || typeof one.id !== "string", "a reference");
      }
      const words = (list: readonly unknown[]) =>
        list.filter((one) => (one as Item | null)?.type === "message" && (one as Item).content !== undefined).length;
      assert.ok(words(result) >= words(said), "a message is gone");
    }),
    { numRuns: 500 },
  );
});

test("a whole reply keeps every byte but its ids", () => {
  const text = `{ "id":"resp_1", "big":12345678901234567890, "output": [ ${JSON.stringify(MESSAGE)} , {"type":"x"} ] }`;
  const body = withSealedIds(Buffer.from(text), JSON.parse(text), { keep: (item) => item, context: OWN });
  const id = /msg_gw1\.[A-Za-z0-9_-]+/.exec(Buffer.from(body).toString())?.[0] ?? "";
  const expected = `{ "id":"resp_1", "big":12345678901234567890, "output": [${JSON.stringify(MESSAGE)},{"type":"x"}] }`;
  assert.equal(Buffer.from(body).toString().replace(id, "msg_1"), expected);
});

test("a short item costs few bytes", () => {
  assert.ok(idOf(CALL).length < 180, `${idOf(CALL).length} for ${JSON.stringify(CALL).length}`);
});
