/** docs/translation-rules.md rule 53: a server that sends more choices than it was asked for gives the same answer streamed and whole. */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { OWN } from "../references/rig.ts";
import { routeTo } from "../request/translate.ts";
import { clientRequest } from "../translate/rig.ts";

const TEXTS = ["the first", "the second"];

function opened(stream: boolean) {
  const said = { model: "m", max_tokens: 50, messages: [{ role: "user", content: "hi" }], stream };
  const permitted = { outputLimit: undefined, strict: false };
  const exchange = openExchange(clientRequest("messages", said), routeTo("chat"), permitted, OWN);
  assert.ok(!isRefusal(exchange));
  return exchange;
}

for (const order of [
  [0, 1],
  [1, 0],
]) {
  test(`whole and streamed, the choices in the order ${order.join(", ")}`, () => {
    const choices = (member: string) =>
      order.map((index) => ({ index, [member]: { role: "assistant", content: TEXTS[index] }, finish_reason: "stop" }));
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const read = opened(false).whole(Buffer.from(JSON.stringify({ choices: choices("message"), usage })));
    assert.ok("body" in read);
    const chunk = `data: ${JSON.stringify({ choices: choices("delta"), usage })}\n\ndata: [DONE]\n\n`;
    const converter = opened(true).stream();
    const frames = [...converter.push(Buffer.from(chunk)), ...converter.end()];
    for (const bytes of [read.body, Buffer.concat(frames.map((frame) => frame.bytes))]) {
      const text = Buffer.from(bytes).toString();
      assert.ok(text.includes("the first"), text);
      assert.ok(!text.includes("the second"), text);
    }
  });
}
