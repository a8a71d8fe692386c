/**
 * Whatever part of a conversation, or of its tools, names what an upstream keeps, the request is refused by its place
 * (ARCHITECTURE.md promise 14); data of the client's own that looks like it is not entered.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { refusedState } from "../../../src/convert/passthrough/request.ts";
import type { JsonObject } from "../../../src/values/json-object.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { scanJson } from "../../../src/wire/json.ts";

/** Where the first part that is refused stands. */
function placeIn(protocol: Protocol, json: JsonObject): string | undefined {
  const body = Buffer.from(JSON.stringify(json));
  const scan = scanJson(body);
  assert.ok("members" in scan);
  return refusedState({ protocol, body, json, scan, model: "m", stream: false })?.facts.param;
}

/** Parts that name what is kept, and the member that says so. */
const PARTS: readonly (readonly [JsonObject, string])[] = [
  [{ type: "input_file", file_id: "file_1" }, "file_id"],
  [{ type: "container_upload" }, "type"],
  [{ type: "file_search", vector_store_ids: [] }, "vector_store_ids"],
  [{ type: "code_interpreter", container: "cntr_1" }, "container"],
];

/** Members that have the same names and keep nothing. */
const HARMLESS: readonly JsonObject[] = [
  { type: "text", text: "container_upload", file_id: null },
  { type: "code_interpreter", container: { type: "auto" } },
  { type: "x", vector_store_ids: "none" },
  { type: "tool_use", input: { file_id: "data" } },
  { audio: { data: "AAAA" } },
  { audio: [{ id: "an element" }] },
];

const PLACES: readonly (readonly [Protocol, (part: JsonObject) => JsonObject, string])[] = [
  ["chat", (part) => ({ messages: [{ role: "user", content: "a" }, part] }), "messages[1]"],
  ["chat", (part) => ({ messages: [{ role: "user", content: [{ type: "text" }, part] }] }), "messages[0].content[1]"],
  ["chat", (part) => ({ messages: [{ content: [{ type: "file", file: part }] }] }), "messages[0].content[0].file"],
  ["chat", (part) => ({ messages: [], tools: [part] }), "tools[0]"],
  ["messages", (part) => ({ messages: [{ content: [{ source: part }] }] }), "messages[0].content[0].source"],
  ["messages", (part) => ({ messages: [{ content: [{ content: [part] }] }] }), "messages[0].content[0].content[0]"],
  ["responses", (part) => ({ input: [{ role: "user", output: [part] }] }), "input[0].output[0]"],
];

test("a part that names what is kept is refused by its place", () => {
  for (const [protocol, around, place] of PLACES) {
    for (const [part, member] of PARTS) {
      const json = around(part);
      assert.equal(placeIn(protocol, json), `${place}.${member}`, JSON.stringify(json));
    }
  }
});

test("sound that was made before is named by its id", () => {
  const json = { messages: [{ role: "assistant", audio: { id: "audio_1" } }] };
  assert.equal(placeIn("chat", json), "messages[0].audio.id");
});

test("of several the first is named", () => {
  const [file] = PARTS[0] as (typeof PARTS)[0];
  const later = { role: "user", content: [file, file] };
  assert.equal(placeIn("chat", { messages: [{ role: "user" }, later, later] }), "messages[1].content[0].file_id");
});

test("what only looks like it goes through", () => {
  for (const part of HARMLESS) assert.equal(placeIn("chat", { messages: [{ content: [part] }, part] }), undefined);
});
