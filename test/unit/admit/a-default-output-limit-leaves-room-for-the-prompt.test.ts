/** The output limit of a stream whose client set none: each line is a model, a prompt, and the limit that is sent. */
import assert from "node:assert/strict";
import test from "node:test";
import { openLimit, type Terms } from "../../../src/admit/terms.ts";

// context   max      default | bytes of the prompt | limit
const ROWS = `
   400000   32000    8192    |        1000         | 32000
   400000   32000    8192    |     1110000         | 30000
   400000   32000    8192    |     1180000         |  8192
   400000   32000    8192    |     1590000         |  8192
     8192    8192    8192    |         300         |  8092
     8192    8192    8192    |       18000         |  2192
     8192    8192    8192    |       30000         |   346
     8192    8192    8192    |       32000         |   256
     8192    8192    8192    |     9999999         |   256
       20      20      20    |     9999999         |     1
`;

for (const row of ROWS.trim().split("\n")) {
  const [contextTokens, maxOutputTokens, outputLimit, bytes, limit] = row
    .replaceAll("|", " ")
    .trim()
    .split(/\s+/)
    .map(Number);
  test(`context ${contextTokens}, ${bytes} bytes: ${limit}`, () => {
    const least = (bytesPerToken: number) => Math.min(Number(contextTokens), Math.ceil(Number(bytes) / bytesPerToken));
    const terms = {
      model: { contextTokens, maxOutputTokens },
      outputLimit,
      inputTokens: least(3),
      inputEstimate: least(4),
    } as unknown as Terms;
    assert.equal(openLimit(terms), limit);
  });
}
