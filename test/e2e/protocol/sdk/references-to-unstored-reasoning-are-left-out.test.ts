/**
 * LangChain and openai-agents send back the reasoning that they received as if it were stored. Reasoning without
 * `encrypted_content` is then looked up by its id, and a server that was told to store nothing answers 400. If the
 * gateway has told it so, it leaves such reasoning out.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { startKeeping } from "../stateful/rig.ts";
import { ask, framesOf } from "../whole/asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startKeeping();
});
after(() => here.close());

for (const stream of [false, true]) {
  test(`a client's second step works although it has not requested encrypted reasoning, ${stream ? "streamed" : "whole"}`, async () => {
    const { key } = await here.account();
    here.simulator.program({ thinking: "First the roof.", text: "Let me see.", tools: [{ name: "look" }] });
    const turn = { role: "user", content: "Is all well?" };
    const fields = { store: undefined, model: "plain-1", stream, input: [turn] };
    const first = await ask(here, "responses", key, fields);
    const text = await first.text();
    const { output } = stream ? JSON.parse(framesOf(text).at(-1)?.data ?? "").response : JSON.parse(text);
    const call = output.find(({ type }: { type: string }) => type === "function_call");
    const result = { type: "function_call_output", call_id: call.call_id, output: "fine" };
    here.simulator.program({ text: "All is well." });
    const second = await ask(here, "responses", key, { ...fields, input: [turn, ...output, result] });
    assert.equal(second.status, 200, await second.text());
    const sent = here.simulator.requests.at(-1)?.json as { input: { type?: string }[] };
    assert.deepEqual(
      sent.input.map(({ type }) => type),
      [undefined, "message", "function_call", "function_call_output"],
    );
  });
}
