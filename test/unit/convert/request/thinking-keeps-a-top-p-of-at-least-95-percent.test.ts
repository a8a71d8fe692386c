/** Rule 23: a messages server takes `top_p` together with thinking from 0.95 on; a smaller one is left out and named. */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { routeTo, translate } from "./translate.ts";

for (const [top_p, sent, dropped] of [
  [0.95, 0.95, []],
  [0.94, undefined, ["top_p"]],
] as const) {
  test(`a top_p of ${top_p} with thinking is sent as ${sent}`, () => {
    const messages = [{ role: "user", content: "q" }];
    const body = { model: "m", messages, max_tokens: 9_000, reasoning_effort: "low", top_p };
    const encoded = translate("chat", body, routeTo("messages", { thinking: "budget", sampling: "full" }));
    assert.ok(!isRefusal(encoded));
    const { thinking, ...rest } = JSON.parse(Buffer.from(encoded.body).toString());
    assert.equal(thinking.type, "enabled");
    assert.deepEqual([rest.top_p, encoded.dropped], [sent, dropped]);
  });
}
