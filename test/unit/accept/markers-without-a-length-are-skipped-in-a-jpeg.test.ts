/**
 * Some markers of a JPEG have no segment (ITU-T T.81, B.1.1.3), and any number of fill bytes may precede a marker. An image
 * that has them before its frame header is still held by its size, and not like one whose size is unknown.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { imageSize } from "../../../src/accept/envelope/image-size.ts";

/** A frame header of 640 by 480 pixels after these bytes. */
function jpeg(...before: number[]): Buffer {
  const frame = [0xff, 0xc0, 0x00, 0x11, 0x08, 0x01, 0xe0, 0x02, 0x80, 0x03];
  return Buffer.concat([Buffer.from([0xff, 0xd8, ...before, ...frame]), Buffer.alloc(64)]);
}

test("the size is found behind segments, fill bytes and markers without a segment", () => {
  const size = { width: 640, height: 480 };
  const comment = [0xff, 0xfe, 0x00, 0x04, 0x61, 0x62];
  assert.deepEqual(imageSize(jpeg()), size);
  assert.deepEqual(imageSize(jpeg(...comment)), size);
  assert.deepEqual(imageSize(jpeg(0xff, 0xff, 0xff)), size, "fill bytes");
  assert.deepEqual(imageSize(jpeg(0xff, 0x01, ...comment)), size, "TEM");
  assert.deepEqual(imageSize(jpeg(0xff, 0xd0, 0xff, 0xd7, ...comment)), size, "RST0 and RST7");
  assert.equal(imageSize(jpeg(0xff, 0xda)), undefined, "a scan begins before a frame");
});
