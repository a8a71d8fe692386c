/** ARCHITECTURE.md promise 7: the frames are the same however the bytes are cut (docs/failure-model.md row 66). */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { SseReader } from "../../../src/wire/sse.ts";
import { cutAt, everyByte, framesOf } from "./frames.ts";

const STREAMS: readonly string[] = [
  'data: {"a":"日本😀"}\n\nevent: é\ndata: 2\n\n: ping\n\ndata: [DONE]\n\n',
  "\ufeffevent: a\r\ndata: 1\r\ndata: 2\r\n\r\ndata: 3\r\n\r\n",
  "data: 1\r\rdata: 2\r\r\r\ndata: 3\n\r\ndata: 4\r\n\n\n\r\r\n",
  "\ufeff\n\ufeff\r\n\r\ndata\ndata:\n\n\n\n",
  "data: cut",
  "data: cut\r",
  "\r",
];

for (const [index, text] of STREAMS.entries()) {
  const bytes = Buffer.from(text);
  const whole = framesOf([bytes]);

  test(`stream ${index}: one chunk per byte, with empty chunks between, gives the same frames`, () => {
    assert.deepEqual(framesOf(everyByte(bytes)), whole);
    assert.deepEqual(framesOf(everyByte(bytes).flatMap((chunk) => [chunk, new Uint8Array(0)])), whole);
  });

  test(`stream ${index}: every cut in two and in three gives the same frames`, () => {
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        assert.deepEqual(framesOf(cutAt(bytes, [first, second])), whole, `cut at ${first} and ${second}`);
      }
    }
  });
}

/** Text of what matters to the reader, and of arbitrary bytes. */
const piece = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom("\n", "\r", "\r\n", "data:", "data: ", "event:", ":", " ", "{}", "é", "\ufeff"),
  },
  { weight: 1, arbitrary: fc.string({ unit: "grapheme", maxLength: 5 }) },
);
const stream = fc.oneof(
  fc.array(piece, { maxLength: 40 }).map((pieces) => Buffer.from(pieces.join(""))),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  // Incomplete byte order marks.
  fc
    .constantFrom([0xef], [0xef, 0x0a, 0x0a], [0xef, 0xbb, 0x0a, 0x0a], [0xef, 0xbb, 0xbe, 0x0a])
    .map((b) => Buffer.from(b)),
);

test("property: random cuts of random streams give the frames of the whole, and every byte back", () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(300), { maxLength: 8 }), fc.nat(30), (bytes, cuts, limit) => {
      const whole = framesOf([bytes]);
      assert.equal(whole.frames.map((frame) => frame.raw).join(""), bytes.toString("latin1"));
      const positions = cuts.map((cut) => cut % (bytes.length + 1));
      assert.deepEqual(framesOf(cutAt(bytes, positions)), whole);
      assert.deepEqual(framesOf(everyByte(bytes)), whole);
      // The limit is reached at the same frame for any cuts.
      const limited = framesOf([bytes], limit);
      assert.deepEqual(framesOf(cutAt(bytes, positions), limit), limited);
      assert.deepEqual(framesOf(everyByte(bytes), limit), limited);
      const tooLong = whole.frames.findIndex((frame) => frame.raw.length > limit);
      assert.equal(limited.overflowed, tooLong >= 0);
      assert.deepEqual(limited.frames, tooLong >= 0 ? whole.frames.slice(0, tooLong) : whole.frames);
    }),
    { numRuns: 3_000, seed: 26 },
  );
});

test("bytes are handed over unread only if the previous frame is complete", () => {
  const frame = "event: a\ndata: 1\n\n";
  for (let cut = 0; cut <= frame.length; cut++) {
    const reader = new SseReader();
    const between = () => reader.between;
    reader.feed(Buffer.from(frame));
    assert.equal(between(), undefined, "no frame was read yet");
    assert.ok(reader.next());
    assert.equal(between(), undefined, "nothing is buffered");
    assert.equal(reader.next(), undefined);
    reader.feed(Buffer.from(frame.slice(0, cut)));
    assert.equal(between()?.length, cut || undefined);
    const isWhole = reader.next() !== undefined;
    if (isWhole) assert.equal(reader.next(), undefined);
    const rest = Buffer.from(`${frame.slice(cut)}data: 2\n\n`);
    reader.feed(rest);
    assert.equal(between(), cut === 0 || isWhole ? rest : undefined, `cut at ${cut}`);
  }
});
