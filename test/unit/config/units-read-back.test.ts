import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { formatDuration, formatSize, parseMultiplier, parseSize } from "../../../src/config/compile/units.ts";
import { parseDurationMs } from "../../../src/values/time.ts";

test("a size is read back from its text", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 2 ** 50 }), (bytes) => parseSize(formatSize(bytes)) === bytes));
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 999 }),
      fc.constantFrom(10, 20, 30, 40),
      (count, power) => parseSize(formatSize(count * 2 ** power)) === count * 2 ** power,
    ),
  );
  assert.deepEqual([1, 1000, 1024, 32 * 2 ** 20, 2 ** 30].map(formatSize), ["1B", "1000B", "1KiB", "32MiB", "1GiB"]);
});

test("a duration is read back from its text", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 999_999_999 }), (ms) => parseDurationMs(formatDuration(ms)) === ms));
  assert.deepEqual([0, 1500, 60_000, 86_400_000].map(formatDuration), ["0s", "1500ms", "1m", "1d"]);
});

test("a multiplier is read to the millionth", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 1_000_000_000n }), (millionths) => {
      const sixth = String(millionths % 1_000_000n).padStart(6, "0");
      return [sixth, sixth.replace(/0+$/, "") || "0"].every(
        (decimals) => parseMultiplier(`${millionths / 1_000_000n}.${decimals}`) === millionths,
      );
    }),
  );
  assert.deepEqual([0.85, 1, "1.0"].map(parseMultiplier), [850_000n, 1_000_000n, 1_000_000n]);
});

test("a malformed size or multiplier is refused", () => {
  for (const text of ["", "0", "1 KiB", "1kib", "1.5MiB", "-1", "1e3", "01", "9999999TiB"]) {
    assert.equal(parseSize(text), undefined, text);
  }
  for (const text of ["", "-1", "+1", "1.", ".5", "1e0", "1000.1", "0.1234567", "01"]) {
    assert.equal(parseMultiplier(text), undefined, text);
  }
});
