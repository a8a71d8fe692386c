/** An upstream may spread one event's JSON over many `data` lines; rewritten, it is one line, and no reader loses half of it. */
import assert from "node:assert/strict";
import test from "node:test";
import { jsonFrame, SseReader } from "../../../src/wire/sse.ts";

test("JSON over four data lines is written as one, and read back whole", () => {
  const [read] = new SseReader().push(Buffer.from('data: {\ndata: "a": 1,\ndata: "b": 2\ndata: }\n\n'));
  const frame = Buffer.from(jsonFrame(read?.data ?? Buffer.alloc(0), "delta"));
  assert.equal(frame.toString(), 'event: delta\ndata: { "a": 1, "b": 2 }\n\n');
  const [again] = new SseReader().push(frame);
  assert.deepEqual(JSON.parse(Buffer.from(again?.data ?? "").toString()), { a: 1, b: 2 });
});
