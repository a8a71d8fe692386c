/** Verification reads each charge in two passes: what it keeps of one in memory must not stay while later ones follow. */
import assert from "node:assert/strict";
import test from "node:test";
import { outlivingScriptMb } from "../../rig/collections.ts";

const source = (path: string): string => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url));

test("a pass forgets a charge when it has read its ACK", () => {
  const outlivedMb = outlivingScriptMb(`
    const { RECORD } = await import(${source("settle/journal/frame.ts")});
    const { encode, encodeCharge } = await import(${source("settle/journal/payload.ts")});
    const { VerifyPass } = await import(${source("settle/journal/pass.ts")});
    const { askOf } = await import(${JSON.stringify(new URL("rig.ts", import.meta.url))});
    const { frameOf: frame } = await import(${JSON.stringify(new URL("records.ts", import.meta.url))});
    const written = [];
    for (let number = 0; number < 4_000; number++) {
      const { requestId: id } = askOf(number);
      written.push(frame(RECORD.final, 1, encodeCharge(askOf(number), {})));
      // Acknowledged some requests later, as under load.
      if (number >= 1_000) written.push(frame(RECORD.ack, 2, encode({ id: askOf(number - 1_000).requestId, outcome: "settled" })));
    }
    const bytes = Buffer.concat(written);
    const segments = Array.from({ length: 9 }, (_, number) => ({ number, end: bytes.length }));
    let count = 0;
    const pass = new VerifyPass({
      log: {
        segments: () => segments,
        read: async (_, from, length) => bytes.subarray(from, from + length),
        nowMs: () => 1_000_000,
      },
      delayMs: 30_000,
      verify: async (charges) => { count += charges.length; },
      verifyAdmin: async () => {},
    }, { segment: 0, offset: 0 });
    await pass.step();
    if (count < 20_000) throw new Error("only " + count);
  `);
  assert.ok(outlivedMb < 8, `${outlivedMb} MB outlived`);
});
