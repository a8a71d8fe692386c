/** The items of a deleted or evicted response can no longer be referred to, unless another kept response has them too. */
import assert from "node:assert/strict";
import test from "node:test";
import { KeptResponses } from "../../../src/simulator/kept.ts";
import type { JsonObject } from "../../../src/values/json-object.ts";

const item = (id: string): JsonObject => ({ id, type: "message", role: "user", content: id });

function keep(kept: KeptResponses, id: string, input: readonly JsonObject[], output: readonly JsonObject[]): void {
  kept.keep({ input }, { id, output });
}

function canBeReferredTo(kept: KeptResponses, id: string): boolean {
  return "request" in kept.filled({ input: [{ type: "item_reference", id }] });
}

const remove = (kept: KeptResponses, id: string) => kept.answer("DELETE", `/v1/responses/${id}`, new URLSearchParams());

test("deleting a response removes its input and output items", () => {
  const kept = new KeptResponses();
  keep(kept, "resp_1", [item("msg_in")], [item("msg_out")]);
  assert.ok(canBeReferredTo(kept, "msg_in"));
  assert.ok(canBeReferredTo(kept, "msg_out"));
  assert.ok(remove(kept, "resp_1"));
  assert.ok(!canBeReferredTo(kept, "msg_in"));
  assert.ok(!canBeReferredTo(kept, "msg_out"));
});

test("an item of two responses remains until both are deleted", () => {
  const kept = new KeptResponses();
  keep(kept, "resp_1", [], [item("msg_shared")]);
  const filled = kept.filled({ previous_response_id: "resp_1", input: [item("msg_new")] });
  assert.ok("request" in filled);
  kept.keep(filled.request, { id: "resp_2", output: [] });
  remove(kept, "resp_1");
  assert.ok(canBeReferredTo(kept, "msg_shared"));
  remove(kept, "resp_2");
  assert.ok(!canBeReferredTo(kept, "msg_shared"));
});

test("a response that is kept again under the same id replaces its items", () => {
  const kept = new KeptResponses();
  keep(kept, "resp_1", [], [item("msg_old"), item("msg_both")]);
  keep(kept, "resp_1", [], [item("msg_both")]);
  assert.deepEqual(kept.ids(), ["resp_1"]);
  assert.ok(!canBeReferredTo(kept, "msg_old"));
  assert.ok(canBeReferredTo(kept, "msg_both"));
  remove(kept, "resp_1");
  assert.ok(!canBeReferredTo(kept, "msg_both"));
});

test("evicting the oldest response removes its items", () => {
  const kept = new KeptResponses();
  keep(kept, "resp_0", [], [item("msg_0")]);
  for (let n = 1; kept.ids().includes("resp_0"); n++) keep(kept, `resp_${n}`, [], [item(`msg_${n}`)]);
  assert.ok(!canBeReferredTo(kept, "msg_0"));
  assert.ok(canBeReferredTo(kept, "msg_1"));
});
