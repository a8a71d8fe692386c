/**
 * A stream that is ended where its hold can grow no more is an answer, before its first word too: who is charged nothing for an
 * input that alone costs more than the account has could ask again without end (ARCHITECTURE.md promise 1).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { HoldExtension } from "../../../src/request/hold-extension.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { Relayed } from "./rig.ts";

test("also where nothing of the model's was given", async () => {
  const holdExtension = { onAnswer() {}, look: () => "stop", usageOf: () => NO_USAGE } as unknown as HoldExtension;
  const stream = new Relayed({ semantic: false, holdExtension });
  const { reason, delivered, complete } = await stream.ended;
  assert.deepEqual([reason, delivered, complete, stream.aborted], ["brake", true, false, true]);
});
