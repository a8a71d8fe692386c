/**
 * The tool runner of Anthropic's SDK begins each run with `thread: {type: "create"}`, which refers to state at a server
 * and is refused. The refusal has the code on which the runner sends the whole conversation instead.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { type Json, listOf, modelOn, PROTOCOL_LIST, seenBody, startDirections } from "../directions/rig.ts";
import { usageLines } from "../whole/asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startDirections();
});
after(() => here.close());

const sdkFor = (apiKey: string, ask = fetch) => new Anthropic({ baseURL: here.url, apiKey, maxRetries: 0, fetch: ask });

/** A tool without arguments, and what it was called with. */
function lookTool(inputs: unknown[]) {
  return {
    name: "look",
    description: "Looks.",
    input_schema: { type: "object" as const, properties: {} },
    parse: (input: unknown) => input as Json,
    run: (input: Json) => {
      inputs.push(input);
      return "A chimney.";
    },
  };
}

for (const upstream of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    test(`${upstream} upstream${stream ? ", streamed" : ""}: the runner ends its loop, and each answer is charged once`, async () => {
      const account = await here.account();
      const [before, inputs] = [here.simulator.count, [] as unknown[]];
      here.simulator.program({ tools: [{ name: "look", arguments: {} }] });
      here.simulator.program({ text: "There is a chimney." });
      const requestIds: string[] = [];
      const sdk = sdkFor(account.key, async (...args) => {
        const reply = await fetch(...args);
        requestIds.push(reply.headers.get("x-request-id") ?? "");
        return reply;
      });
      const runner = sdk.beta.messages.toolRunner({
        model: modelOn(upstream),
        max_tokens: 500,
        messages: [{ role: "user", content: "What is on this roof?" }],
        tools: [lookTool(inputs)],
        stream,
      });
      const said = await runner.runUntilDone();
      assert.deepEqual(
        said.content.map((block) => (block.type === "text" ? block.text : block.type)),
        ["There is a chimney."],
      );
      assert.deepEqual(inputs, [{}]);
      assert.equal(here.simulator.count - before, 2);
      const body = seenBody(here.simulator.requests.at(-1));
      assert.equal(listOf(body.messages ?? body.input).length, 3, "the whole conversation is sent");
      assert.equal(body.thread, undefined);
      for (const id of requestIds) await here.requestEnd(id);
      assert.equal((await usageLines(here, account)).length, 2);
    });
  }
}

test("a thread that shall not go on without its server raises the SDK's own error", async () => {
  const { key } = await here.account();
  const thread = sdkFor(key).beta.messages.thread({ model: modelOn("messages"), max_tokens: 500 });
  const error = await thread.send({ role: "user", content: "hello" }).then(
    () => assert.fail("the request was not refused"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Anthropic.ThreadUnsupportedRequestError, String(error));
  assert.match(error.message, /thread: A parameter is not supported/);
});
