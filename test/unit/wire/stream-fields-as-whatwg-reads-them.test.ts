/** docs/failure-model.md row 65: the event stream format of WHATWG HTML section 9.2. */
import assert from "node:assert/strict";
import test from "node:test";
import { sseFrame } from "../../../src/wire/sse.ts";
import { everyByte, frameOf, framesOf } from "./frames.ts";

function read(text: string): [event: string, data: string | undefined][] {
  const { frames, overflowed } = framesOf([Buffer.from(text)]);
  assert.equal(overflowed, false);
  assert.equal(frames.map((frame) => frame.raw).join(""), Buffer.from(text).toString("latin1"));
  return frames.map((frame) => [frame.event, frame.data]);
}

test("LF, CR LF and CR end lines in any mixture", () => {
  assert.deepEqual(read("event: a\ndata: 1\n\n"), [["a", "1"]]);
  assert.deepEqual(read("event: a\r\ndata: 1\r\n\r\n"), [["a", "1"]]);
  assert.deepEqual(read("event: a\rdata: 1\r\r"), [["a", "1"]]);
  assert.deepEqual(read("data: 1\r\n\ndata: 2\n\rdata: 3\r\r\ndata: 4\n\n"), [
    ["", "1"],
    ["", "2"],
    ["", "3"],
    ["", "4"],
  ]);
});

test("one space after the colon is dropped, a second one is kept", () => {
  assert.deepEqual(read("data:1\n\ndata: 2\n\ndata:  3 \n\ndata:\t4\n\n"), [
    ["", "1"],
    ["", "2"],
    ["", " 3 "],
    ["", "\t4"],
  ]);
});

test("several data lines are joined by a line feed", () => {
  assert.deepEqual(read("data: 1\r\ndata:\ndata\ndata: 2\n\n"), [["", "1\n\n\n2"]]);
});

test("data without a colon, or with nothing after it, is empty data", () => {
  assert.deepEqual(read("data\n\ndata:\n\ndata: \n\n"), [
    ["", ""],
    ["", ""],
    ["", ""],
  ]);
});

test("comments, id, retry and unknown fields are ignored, and field names are exact", () => {
  assert.deepEqual(read(": keep-alive\n\nid: 1\nretry: 5\nfoo: x\ndata: 1\n\nDATA: x\n data: y\ndatax: z\n\n\n"), [
    ["", undefined],
    ["", "1"],
    ["", undefined],
    ["", undefined],
  ]);
});

test("the last event field counts", () => {
  assert.deepEqual(read("event: a\nevent:b\ndata: 1\n\nevent: c\nevent\ndata: 2\n\n"), [
    ["b", "1"],
    ["", "2"],
  ]);
});

test("a leading byte order mark is not part of the first line, a later one is", () => {
  assert.deepEqual(read("\ufeffdata: 1\n\ndata: 2\n\n"), [
    ["", "1"],
    ["", "2"],
  ]);
  assert.deepEqual(read("\ufeff\ndata: 1\n\n"), [
    ["", undefined],
    ["", "1"],
  ]);
  assert.deepEqual(read("data: 1\n\n\ufeffdata: 2\n\n"), [
    ["", "1"],
    ["", undefined],
  ]);
  assert.deepEqual(read("\ufeff\ufeffdata: 1\n\n"), [["", undefined]]);
  assert.deepEqual(read("\ufeff"), [["", undefined]]);
});

test("an incomplete byte order mark is text of the first line", () => {
  for (const start of [[0xef], [0xef, 0xbb], [0xef, 0xbb, 0xbe]]) {
    const bytes = Buffer.from([...start, 0x0a, 0x0a]);
    for (const chunks of [[bytes], everyByte(bytes)]) {
      assert.deepEqual(framesOf(chunks).frames, [{ raw: bytes.toString("latin1"), event: "", data: undefined }]);
    }
  }
});

test("the end of the stream completes the last frame even if its line ends are missing", () => {
  assert.deepEqual(read("data: 1\n\ndata: [DONE]\n"), [
    ["", "1"],
    ["", "[DONE]"],
  ]);
  assert.deepEqual(read("data: [DONE]"), [["", "[DONE]"]]);
  assert.deepEqual(read("event: x\r\ndata: 1\r"), [["x", "1"]]);
  assert.deepEqual(read("data: 1\r\r"), [["", "1"]]);
  assert.deepEqual(read("event: x\n: bye"), [["x", undefined]]);
  assert.deepEqual(read(""), []);
});

test("row 67: text that looks like an event is only text", () => {
  const content = 'x\n\ndata: [DONE]\n\n</script>\r"';
  const bytes = sseFrame(JSON.stringify({ content }), "delta");
  const { frames } = framesOf([bytes]);
  assert.equal(frames.length, 1);
  assert.equal(frames[0]?.event, "delta");
  assert.deepEqual(JSON.parse(frames[0]?.data ?? ""), { content });
});

test("written frames are read back, and a line end inside them is a defect of the gateway", () => {
  assert.equal(Buffer.from(sseFrame("[DONE]")).toString(), "data: [DONE]\n\n");
  assert.equal(Buffer.from(sseFrame('{"a":"é"}', "e")).toString(), 'event: e\ndata: {"a":"é"}\n\n');
  for (const bad of ["a\nb", "a\rb"]) {
    assert.throws(() => sseFrame(bad), { code: "ERR_ASSERTION" });
    assert.throws(() => sseFrame("1", bad), { code: "ERR_ASSERTION" });
  }
  assert.equal(frameOf({ raw: Buffer.from("é"), event: "", data: undefined }).raw, "Ã©");
});
