/** `reasoning.generate_summary` is what clients of an earlier version say for `reasoning.summary`. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { routeTo, upstreamBody } from "./translate.ts";

const ask = (reasoning: object, to: Protocol) =>
  upstreamBody("responses", { input: "hi", reasoning }, routeTo(to, to === "messages" ? { thinking: "adaptive" } : {}));

for (const to of ["responses", "messages", "chat"] as const) {
  test(`both names ask a ${to} server for the same`, () => {
    const older = ask({ effort: "low", generate_summary: "detailed" }, to);
    assert.deepEqual(older, ask({ effort: "low", summary: "detailed" }, to));
  });
}

test("it is another thing than no summary, and the newer name is stronger", () => {
  const older = ask({ effort: "low", generate_summary: "detailed" }, "responses");
  assert.deepEqual(older.reasoning, { effort: "low", summary: "detailed" });
  const both = ask({ effort: "low", summary: "concise", generate_summary: "detailed" }, "responses");
  assert.deepEqual(both.reasoning, { effort: "low", summary: "concise" });
});
