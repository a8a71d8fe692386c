/** Rule 3: `reasoning.mode` asks for something only if it is not `standard`. */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { routeTo, translate } from "./translate.ts";

for (const [mode, dropped] of [
  ["standard", []],
  ["pro", ["reasoning.mode"]],
] as const) {
  test(`the mode ${mode} gives ${dropped.length} names`, () => {
    const encoded = translate("responses", { model: "m", input: "q", reasoning: { mode } }, routeTo("chat"));
    assert.ok(!isRefusal(encoded));
    assert.deepEqual(encoded.dropped, dropped);
  });
}
