import assert from "node:assert/strict";
import test from "node:test";
import { parseRetryAfterS } from "../../../src/wire/header.ts";

const VALUES: readonly (readonly [text: string, seconds: number | undefined])[] = [
  ["0.2", 1],
  ["1.5", 2],
  ["30.000", 30],
  ["299.997", 300],
  ["3600.0", 3600],
  ["3600.1", undefined],
  ["-0.5", undefined],
  [".5", undefined],
  ["5.", undefined],
  ["1.5.2", undefined],
];

for (const [text, seconds] of VALUES) {
  test(`retry-after: ${text} is ${seconds ?? "not plausible"}`, () => {
    assert.equal(parseRetryAfterS(text, 0), seconds);
  });
}
