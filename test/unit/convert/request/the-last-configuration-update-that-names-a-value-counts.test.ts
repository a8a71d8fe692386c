/**
 * Rule 20: a `configuration_update` in the input replaces the effort and the format of the body. One that does not name
 * a value leaves the earlier one as it is.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

const USER = { role: "user", content: "q" };
const update = (members: object) => ({ type: "configuration_update", ...members });
const sent = (members: object) =>
  upstreamBody("responses", { model: "m", ...members }, routeTo("chat", { efforts: ["low", "medium", "high"] }));

test("the effort of an update counts, also after an update of the format alone", () => {
  const input = [
    update({ reasoning: { effort: "high" } }),
    update({ text: { format: { type: "json_object" } } }),
    USER,
  ];
  assert.equal(sent({ input, reasoning: { effort: "low" } }).reasoning_effort, "high");
});

test("the format of an update counts instead of the body's", () => {
  const input = [USER, update({ text: { format: { type: "json_object" } } })];
  const schema = { type: "json_schema", name: "n", schema: { type: "object" } };
  assert.deepEqual(sent({ input, text: { format: schema } }).response_format, { type: "json_object" });
});
