/**
 * The official SDKs read a stream that ended at the edge of its hold as an answer cut by a limit, with all of its text.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES } from "../../../../src/values/protocol.ts";
import { NO_USAGE } from "../../../../src/values/tokens/usage.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { clientRequest, countingContext, routeOf } from "../../../unit/convert/translate/rig.ts";
import { bodyOf, recordings } from "../../../unit/convert/translate/stream-cases.ts";
import { accountWith, holdOf, STEP, smallSteps } from "../whole/open-ended.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: smallSteps });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const ENDLESS = "word ".repeat(100_000);
const HELLO = "hello";

/** A client whose account can pay for a little more than two steps. */
async function openai(): Promise<OpenAI> {
  const account = await accountWith(here, holdOf("chat", {}, 2 * STEP + 40));
  return new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
}

for (const upstream of PROTOCOL_NAMES) {
  test(`chat on ${upstream}: the finish reason is length, and usage is reported`, async () => {
    here.simulator.program({ text: ENDLESS, thinking: "hm", ignoreLimit: true, deltaChars: 40 });
    const stream = (await openai()).chat.completions.stream({
      model: `${upstream}-1`,
      messages: [{ role: "user", content: HELLO }],
      stream_options: { include_usage: true },
    });
    const completion = await stream.finalChatCompletion();
    const [choice] = completion.choices;
    assert.equal(choice?.finish_reason, "length");
    assert.ok((choice.message.content ?? "").length > 1_200);
    assert.ok((completion.usage?.completion_tokens ?? 0) >= 400);
  });

  test(`responses on ${upstream}: incomplete, with the text and the reasoning so far`, async () => {
    here.simulator.program({ text: ENDLESS, thinking: "hm", ignoreLimit: true, deltaChars: 40 });
    const stream = (await openai()).responses.stream({
      model: `${upstream}-1`,
      input: HELLO,
      reasoning: { summary: "auto" },
    });
    const response = await stream.finalResponse();
    assert.deepEqual([response.status, response.incomplete_details], ["incomplete", { reason: "max_output_tokens" }]);
    assert.ok(response.output_text.length > 1_200);
    assert.equal(response.output.at(-1)?.type, "message");
    assert.ok((response.usage?.output_tokens ?? 0) >= 400);
  });
}

/**
 * Clients of this protocol always name a limit, so the gateway never ends their streams this way; its converters can.
 */
for (const upstream of PROTOCOL_NAMES) {
  test(`messages on ${upstream}: the stop reason is max_tokens, wherever the stream is cut`, async () => {
    const names = new Map(recordings(upstream).map((recording) => [recording.name, recording.bytes]));
    for (const name of ["text", "thinking", "parallel-calls"]) {
      const frames = (names.get(name) ?? Buffer.alloc(0)).toString().split("\n\n");
      for (let count = 2; count < frames.length - 4; count++) {
        const exchange = openExchange(
          clientRequest("messages", bodyOf("messages")),
          routeOf(upstream),
          { outputLimit: undefined, openEnded: true, strict: false },
          countingContext(),
        );
        assert.ok(!isRefusal(exchange));
        const converter = exchange.stream();
        const given = converter.push(Buffer.from(`${frames.slice(0, count).join("\n\n")}\n\n`));
        if (!converter.opened) continue;
        const body = Buffer.concat(
          [...given, ...converter.truncate({ ...NO_USAGE, input: 11, output: 7 })].map((frame) => frame.bytes),
        );
        const headers = { "content-type": "text/event-stream" };
        const fetch = async () => new Response(body, { headers });
        const client = new Anthropic({ baseURL: here.url, apiKey: "none", maxRetries: 0, fetch });
        const stream = client.messages.stream({
          model: "m",
          max_tokens: 4_096,
          messages: [{ role: "user", content: HELLO }],
        });
        const message = await stream.finalMessage();
        assert.deepEqual([message.stop_reason, message.usage.output_tokens], ["max_tokens", 7], `${name} ${count}`);
      }
    }
  });
}
