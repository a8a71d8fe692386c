/**
 * The events are the same however an upstream's bytes are cut (ARCHITECTURE.md promise 7). A stream of the simulator is
 * cut at every byte.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import { PROTOCOL_NAMES } from "../../../../src/values/protocol.ts";
import { decodeBytes, planFor, streamBytes } from "./decoding.ts";

const BEHAVIOR: Behavior = {
  thinking: "denk 🤔 nach",
  text: "Grüße 👋",
  tools: [
    { name: "f", arguments: { a: "ü" } },
    { name: "g", arguments: { b: 2 } },
  ],
  interleave: true,
  pings: 2,
};

for (const protocol of PROTOCOL_NAMES) {
  for (const lineEnd of ["\n", "\r\n", "\r"] as const) {
    test(`${protocol} with the line end ${JSON.stringify(lineEnd)}: a cut at any byte gives the same events`, () => {
      const plan = planFor(protocol);
      const bytes = streamBytes(protocol, { ...BEHAVIOR, lineEnd });
      const { events, decoder } = decodeBytes([bytes], plan);
      assert.equal(decoder.fault, undefined);
      for (let at = 1; at < bytes.length; at++) {
        const cut = decodeBytes([bytes.subarray(0, at), bytes.subarray(at)], plan);
        assert.deepEqual(cut.events, events, `cut at ${at}`);
      }
      const crumbs = decodeBytes(
        Array.from(bytes, (byte) => Uint8Array.of(byte)),
        plan,
      );
      assert.deepEqual(crumbs.events, events);
    });
  }
}
