/**
 * An upstream that keeps the answer may complete one that is too large for the gateway's limits, and the client that has its id can
 * retrieve it (docs/decisions/stateful-upstreams-get-wrapped-ids.md). So it is not free, even if no output was shown, and the upstream is
 * asked for its count.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { DisconnectPlan } from "../../../src/request/disconnect.ts";
import type { KeptState } from "../../../src/request/stored/kept-answer.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
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

const PRODUCED = { bytes: 900, tokens: 300, deltas: 1 };
const COUNTED: KeptState = {
  state: "ended",
  counts: { usage: { ...NO_USAGE, input: 10, output: 4_000 }, final: true, produced: PRODUCED },
};
const READ_ON: DisconnectPlan = {
  ...{ forMs: Number.POSITIVE_INFINITY, bytesMax: Number.POSITIVE_INFINITY, doubt: undefined },
  covers: () => true,
  begun: () => () => {},
};

for (const [title, told, output] of [
  ["an answer that is too large is charged by its count if it is complete", COUNTED, 4_000],
  ["one that is still being written is charged by the evidence", { state: "running" }, undefined],
] as const) {
  for (const leaves of [false, true]) {
    test(`${title}${leaves ? ", also if its client has disconnected" : ""}`, async () => {
      let asked = 0;
      const kept = async () => {
        asked++;
        return told;
      };
      const stream = new Relayed({ semantic: false, leaving: READ_ON, kept });
      if (leaves) stream.clientLeaves();
      stream.fault = { ...FAULT, canBeAskedFor: true };
      stream.say();
      const { reason, delivered, stopped, counts } = await stream.ended;
      assert.deepEqual([asked, stream.aborted], [1, true]);
      assert.deepEqual([reason, delivered], [leaves ? "client_gone" : "upstream_invalid", true]);
      assert.deepEqual([counts.usage?.output, counts.final], [output, output !== undefined]);
      if (!leaves) assert.equal(stopped, true);
    });
  }
}

test("what a server sends that violates its protocol is not asked about", async () => {
  let asked = 0;
  const stream = new Relayed({
    semantic: false,
    kept: async () => {
      asked++;
      return COUNTED;
    },
  });
  stream.fault = FAULT;
  stream.say();
  assert.equal((await stream.ended).delivered, false);
  assert.equal(asked, 0);
});
