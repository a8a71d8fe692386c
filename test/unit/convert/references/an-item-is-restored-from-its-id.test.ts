/**
 * docs/decisions/references-carry-what-they-name.md: an item that was sealed into an id is restored from it, for its
 * own account only.
 */
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

test("an id of a whole reply contains its item and keeps the item's prefix", async () => {
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

test("a stream's short ids are resolved from the carrier item, wherever it is, and the carrier is removed", async () => {
  const carrier = carrierOf(MESSAGE, CALL);
  assert.deepEqual([carrier.type, carrier.summary], ["reasoning", []]);
  const input = [refer("msg_1"), refer("fc_1"), refer(carrier.id), { type: "function_call_output", call_id: "call_1" }];
  const expected = [MESSAGE, CALL, { type: "function_call_output", call_id: "call_1" }];
  assert.deepEqual(await placed(input), expected);
  assert.deepEqual(
    await placed([carrier, ...input.slice(0, 2), ...input.slice(3)]),
    expected,
    "the carrier may be sent first, unchanged",
  );
});

test("ids that a server uses again in each reply are resolved to the right reply", async () => {
  const [first, second] = ["one", "two"].map((text) => ({ ...MESSAGE, content: [{ type: "output_text", text }] }));
  const [a, b] = [carrierOf(first as Item), carrierOf(second as Item)];
  const input = [refer("msg_1"), refer(a.id), { role: "user", content: "x" }, refer("msg_1"), refer(b.id)];
  assert.deepEqual(await placed(input), [first, { role: "user", content: "x" }, second]);
  assert.deepEqual(await placed([refer(a.id), refer("msg_1")]), [first], "a carrier may come first");
});

test("a reference whose carrier is missing gets no item of another reply", async () => {
  const [first, second] = ["one", "two"].map((text) => ({ ...MESSAGE, content: [{ type: "output_text", text }] }));
  const [a, b] = [carrierOf(first as Item), carrierOf(second as Item)];
  const user = { role: "user", content: "x" };
  const later = [refer("msg_1"), refer(b.id)];
  assert.deepEqual(
    await placed([refer("msg_1"), user, ...later, user]),
    [user, second, user],
    "the reference is left out",
  );
  const early = [user, refer(a.id), user, refer(b.id), user, refer("msg_1"), user];
  assert.deepEqual(await placed(early), [user, user, user, user], "two carriers hold the id");
  const other = carrierOf(CALL);
  assert.deepEqual(
    await placed([user, refer("msg_1"), user, refer("fc_1"), refer(other.id), user, refer(a.id)]),
    [user, first, user, CALL, user],
    "one carrier holds the id",
  );
});

test("items of one reply with the same id are restored in their order", async () => {
  const items = ["one", "two"].map((text) => ({ ...MESSAGE, content: [{ type: "output_text", text }] }));
  assert.deepEqual(await placed([refer("msg_1"), refer("msg_1"), refer(carrierOf(...items).id)]), items);
});

test("an approval response gets the short id of its request", async () => {
  const asks = { id: "mcpr_1", type: "mcp_approval_request", name: "delete", arguments: "{}", server_label: "files" };
  const answer = { type: "mcp_approval_response", approve: true, approval_request_id: idOf(asks) };
  assert.deepEqual(await placed([refer(idOf(asks)), answer]), [asks, { ...answer, approval_request_id: "mcpr_1" }]);
});

test("text that looks like an id changes nothing", async () => {
  for (const input of ["say msg_gw1.AAAA", [{ role: "user", content: "say msg_gw1.AAAA" }], []]) {
    const text = `{ "model":"m", "input" : ${JSON.stringify(input)} }`;
    const body = Buffer.from(text);
    const whole = await withItemsInPlace({ body, json: JSON.parse(text) }, OWN, { bytesMax: 1_000 });
    assert.ok(typeof whole === "object" && "body" in whole && whole.body === body);
  }
});

test("items that the client sends back whole get their short ids again, the only ones that their server knows", async () => {
  const other = { ...MESSAGE, id: idOf(MESSAGE), content: "changed by its client" };
  assert.deepEqual(await placed([other]), [{ ...other, id: "msg_1" }]);
  const strange = { ...CALL, id: idOf(CALL, contextOf("another")) };
  const { id: _, ...nameless } = strange;
  assert.deepEqual(await placed([strange]), [nameless], "an id that cannot be opened is removed");
});

test("reasoning of which only a sealed id is left is left out if the id does not open: after a change of keys, or for another account", async () => {
  const strange = new KeptItems();
  strange.add(MESSAGE);
  const carrier = strange.carrier(contextOf("another"));
  assert.deepEqual(await placed([MESSAGE, carrier, CALL]), [MESSAGE, CALL]);
  const { id: _, ...readable }: Item = { ...carrier, encrypted_content: "opaque" };
  assert.deepEqual(
    await placed([{ ...carrier, encrypted_content: "opaque" }]),
    [readable],
    "the server of the carrier may read it",
  );
});

test("a reference of another account, a changed one or an invented one leaves the whole input as it is", async () => {
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

test("sealed reasoning is not opened as an item, nor a sealed item as reasoning", async () => {
  const reasoning = OWN.seal(Buffer.from("{}"), "reasoning:messages");
  assert.equal(await placed([refer(`rs_${reasoning}`)]), "as it is");
  const asSignature = idOf(MESSAGE).slice("msg_".length);
  assert.equal(openReasoning(asSignature, originOf(routeTo("messages")), OWN), undefined);
});

test("reasoning goes back to its own model as its server wrote it, and is left out if it has no encrypted content", async () => {
  const native = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "opaque" };
  const route = routeTo("responses");
  const [restored] = (await placed([refer(idOf(keptNative(native, route, OWN)))])) as Item[];
  assert.deepEqual(openReasoning(String(restored?.encrypted_content), originOf(route), OWN), [native]);
  const { encrypted_content: _, ...bare } = native;
  assert.deepEqual(await placed([MESSAGE, refer(idOf(keptNative(bare, route, OWN)))]), [MESSAGE]);
});

test("log probabilities are not kept, because no model reads them", async () => {
  const content = [{ type: "output_text", text: "a", annotations: [], logprobs: [{ token: "a", logprob: -1 }] }];
  const [kept] = (await placed([refer(idOf({ ...MESSAGE, content }))])) as Item[];
  assert.deepEqual(kept?.content, [{ type: "output_text", text: "a", annotations: [], logprobs: [] }]);
});

test("for any input nothing throws, messages are kept and no sealed id is left", async () => {
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
      assert.ok(words(result) >= words(said), "a message is missing");
    }),
    { numRuns: 500 },
  );
});

test("a whole reply keeps every byte except its ids", () => {
  const text = `{ "id":"resp_1", "big":12345678901234567890, "output": [ ${JSON.stringify(MESSAGE)} , {"type":"x"} ] }`;
  const body = withSealedIds(Buffer.from(text), JSON.parse(text), { keep: (item) => item, context: OWN });
  const id = /msg_gw1\.[A-Za-z0-9_-]+/.exec(Buffer.from(body).toString())?.[0] ?? "";
  const expected = `{ "id":"resp_1", "big":12345678901234567890, "output": [${JSON.stringify(MESSAGE)},{"type":"x"}] }`;
  assert.equal(Buffer.from(body).toString().replace(id, "msg_1"), expected);
});

test("the id of a short item is short", () => {
  assert.ok(idOf(CALL).length < 180, `${idOf(CALL).length} for ${JSON.stringify(CALL).length}`);
});
