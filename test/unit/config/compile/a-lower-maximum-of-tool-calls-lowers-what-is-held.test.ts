/** An operator who only lowers the maximum of charged tool calls need not lower the default of held ones, too. */
import assert from "node:assert/strict";
import test from "node:test";
import { LEAST, settingsOf } from "./least.ts";

test("without a figure of its own, no more tool calls are held than are charged at most", () => {
  const callsOf = (written: string) =>
    settingsOf(
      LEAST.replace("context_tokens: 4000", `context_tokens: 4000\n    tool_calls: ${written}`),
    ).catalog.models.get("big-1")?.toolCalls;
  assert.deepEqual(callsOf("{max: 3}"), { held: 3, max: 3 });
  assert.deepEqual(callsOf("{max: 3, held: 2}"), { held: 2, max: 3 });
});
