/**
 * A stream that ends because its hold cannot grow is an answer, even before its first word: otherwise an account could
 * repeat, free of charge, an input that alone costs more than its funds (ARCHITECTURE.md promise 1).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { HoldExtension } from "../../../src/request/hold-extension.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { Relayed } from "./rig.ts";

test("it counts as delivered even if nothing of the model's output was", async () => {
  const holdExtension = { onAnswer() {}, look: () => "stop", usageOf: () => NO_USAGE } as unknown as HoldExtension;
  const stream = new Relayed({ semantic: false, holdExtension });
  const { reason, delivered, complete } = await stream.ended;
  assert.deepEqual([reason, delivered, complete, stream.aborted], ["brake", true, false, true]);
});
