/** Programs label any text as ASCII; what they send is UTF-8, and the model gets it as it was written. */
import assert from "node:assert/strict";
import test from "node:test";
import { charsetOf, decodeCharset } from "../../../src/wire/charset.ts";

const TEXT = "naïve – 图";

for (const label of ["ascii", "US-ASCII", "utf8", "UTF-8"]) {
  test(`${label} is read as UTF-8`, () => {
    assert.equal(decodeCharset(Buffer.from(TEXT), charsetOf(`text/plain; charset="${label}"`)), TEXT);
  });
}
