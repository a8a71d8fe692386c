/**
 * An upstream that keeps the answer may complete one that is too large for the gateway's limits, and the client that has its id can
 * retrieve it (docs/decisions/stateful-upstreams-get-wrapped-ids.md). So it is not free, even if no output was shown.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

const UNKNOWN = async () => ({ state: "unknown" }) as const;
const FAULT = { cause: "upstream_invalid", code: undefined, reason: "it failed" } as const;

for (const [title, kept, more, delivered] of [
  ["an answer that is too large counts as delivered if it is kept", true, { canBeAskedFor: true }, true],
  ["an answer that is too large does not count as delivered if it is not kept", false, { canBeAskedFor: true }, false],
  ["an answer that its server broke off cannot be retrieved", true, {}, false],
  ["an answer that its model failed at cannot be retrieved", true, { canBeAskedFor: true, ofModel: true }, false],
] as const) {
  test(title, async () => {
    const stream = new Relayed({ semantic: false, ...(kept ? { kept: UNKNOWN } : {}) });
    stream.fault = { ...FAULT, ...more };
    stream.say();
    assert.equal((await stream.ended).delivered, delivered);
  });
}
