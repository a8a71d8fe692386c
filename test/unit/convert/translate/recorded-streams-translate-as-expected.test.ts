/**
 * Each `test/golden/streams/<upstream>/<case>.sse` is a recorded upstream stream. Next to it is one
 * `<case>.<client>.expected.sse` for each client of another protocol. UPDATE_GOLDENS=1 rewrites the expected files;
 * review their diff.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test from "node:test";
import { PROTOCOL_NAMES } from "../../../../src/values/protocol.ts";
import { convertStream, exchangeOf, routeOf } from "./rig.ts";
import { bodyOf, recordings } from "./stream-cases.ts";

for (const upstream of PROTOCOL_NAMES) {
  for (const { name, client, bytes, expected } of recordings(upstream)) {
    test(`${name}, from ${upstream} to ${client}: the translated stream is as expected`, () => {
      const { text } = convertStream(exchangeOf(client, bodyOf(client), routeOf(upstream)), [bytes]);
      if (process.env.UPDATE_GOLDENS) writeFileSync(expected, text);
      assert.equal(text, readFileSync(expected, "utf8"));
    });
  }
}
