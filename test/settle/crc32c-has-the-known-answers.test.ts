/** CRC-32C: the check value of the catalogue of checksums, the vectors of RFC 3720 appendix B.4, and pieces. */
import assert from "node:assert/strict";
import test from "node:test";
import { crc32c } from "../../src/settle/journal/crc32c.ts";

const VECTORS: readonly [string, Uint8Array, number][] = [
  ["nothing", new Uint8Array(0), 0],
  ["the digits 1 to 9", Buffer.from("123456789"), 0xe3069283],
  ["32 zero bytes", new Uint8Array(32), 0x8a9136aa],
  ["32 bytes of 0xff", new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ["0 to 31", Uint8Array.from({ length: 32 }, (_, at) => at), 0x46dd794e],
  ["31 to 0", Uint8Array.from({ length: 32 }, (_, at) => 31 - at), 0x113fdb5c],
];

for (const [name, bytes, expected] of VECTORS) {
  test(name, () => assert.equal(crc32c(bytes), expected));
}

test("in pieces of any size", () => {
  const bytes = Buffer.from("The quick brown fox jumps over the lazy dog, twice, and then a third time.");
  for (let cut = 0; cut <= bytes.length; cut++) {
    assert.equal(crc32c(bytes, cut, bytes.length, crc32c(bytes, 0, cut)), crc32c(bytes));
  }
});
