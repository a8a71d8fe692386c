import assert from "node:assert/strict";
import test from "node:test";
import type { ToolPlan } from "../../../src/simulator/behavior.ts";
import { anthropicOf, openaiOf, withSimulator } from "./clients.ts";

const TOOLS: readonly ToolPlan[] = [
  { name: "weather", arguments: { city: "Zürich", days: [1, 2, 3] } },
  { name: "clock", arguments: {}, id: "call_given" },
  { name: "patch", arguments: "*** Begin Patch\n+line", kind: "custom" },
];

for (const interleave of [false, true]) {
  test(`chat: the SDK reads parallel calls, one of them custom (interleaved ${interleave})`, () =>
    withSimulator(async (simulator) => {
      simulator.program({ tools: TOOLS, interleave, deltaChars: 3 });
      const final = await openaiOf(simulator)
        .chat.completions.stream({ model: "m", messages: [{ role: "user", content: "hi" }] })
        .finalChatCompletion();
      const choice = final.choices[0];
      assert.equal(choice?.finish_reason, "tool_calls");
      assert.equal(choice?.message.content, null);
      const calls = choice?.message.tool_calls as unknown as {
        id: string;
        function?: { arguments: string };
        custom?: { input: string };
      }[];
      assert.deepEqual(JSON.parse(String(calls[0]?.function?.arguments)), TOOLS[0]?.arguments);
      assert.equal(calls[1]?.id, "call_given");
      assert.equal(calls[1]?.function?.arguments, "{}");
    }));

  test(`responses: the SDK reads parallel calls, one of them custom (interleaved ${interleave})`, () =>
    withSimulator(async (simulator) => {
      simulator.program({ text: "calling", tools: TOOLS, interleave, deltaChars: 3 });
      const final = await openaiOf(simulator).responses.stream({ model: "m", input: "hi" }).finalResponse();
      const [message, weather, clock, patch] = final.output;
      assert.equal(message?.type, "message");
      assert.ok(weather?.type === "function_call");
      assert.deepEqual(JSON.parse(weather.arguments), TOOLS[0]?.arguments);
      assert.ok(clock?.type === "function_call" && clock.call_id === "call_given" && clock.arguments === "{}");
      assert.ok(patch?.type === "custom_tool_call" && patch.input === TOOLS[2]?.arguments);
    }));
}

test("chat: the input of a custom tool is in the deltas and in the whole reply", () =>
  withSimulator(async (simulator) => {
    const client = openaiOf(simulator);
    const request = { model: "m", messages: [{ role: "user" as const, content: "hi" }] };
    simulator.program({ tools: TOOLS.slice(2), deltaChars: 4 }, { times: 2 });
    let input = "";
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
      const call = chunk.choices[0]?.delta.tool_calls?.[0] as { custom?: { input?: string } } | undefined;
      input += call?.custom?.input ?? "";
    }
    assert.equal(input, TOOLS[2]?.arguments);
    const whole = await client.chat.completions.create(request);
    const call = whole.choices[0]?.message.tool_calls?.[0];
    assert.ok(call?.type === "custom" && call.custom.input === input);
  }));

test("messages: parallel calls are sequential blocks, and a custom one has its input", () =>
  withSimulator(async (simulator) => {
    simulator.program({ text: "calling", tools: TOOLS, interleave: true, deltaChars: 3 });
    const final = await anthropicOf(simulator)
      .messages.stream({ model: "m", max_tokens: 1000, messages: [{ role: "user", content: "hi" }] })
      .finalMessage();
    assert.equal(final.stop_reason, "tool_use");
    const inputs = final.content.flatMap((block) => (block.type === "tool_use" ? [block.input] : []));
    assert.deepEqual(inputs, [TOOLS[0]?.arguments, {}, { input: TOOLS[2]?.arguments }]);
    const first = final.content[1];
    assert.ok(first?.type === "tool_use" && first.id.startsWith("toolu_"));
  }));

test("responses: the call of a namespaced tool has the namespace", () =>
  withSimulator(async (simulator) => {
    simulator.program({ tools: [{ name: "f", namespace: "crm", arguments: { a: 1 } }] });
    const final = await openaiOf(simulator).responses.stream({ model: "m", input: "hi" }).finalResponse();
    assert.ok(final.output[0]?.type === "function_call" && final.output[0].namespace === "crm");
  }));

test("a refusal is in the form of each protocol", () =>
  withSimulator(async (simulator) => {
    simulator.program({ refusal: "I would rather not." }, { times: 3 });
    const chat = await openaiOf(simulator)
      .chat.completions.stream({ model: "m", messages: [{ role: "user", content: "hi" }] })
      .finalChatCompletion();
    assert.equal(chat.choices[0]?.message.refusal, "I would rather not.");
    assert.equal(chat.choices[0]?.finish_reason, "stop");
    const message = await anthropicOf(simulator)
      .messages.stream({ model: "m", max_tokens: 100, messages: [{ role: "user", content: "hi" }] })
      .finalMessage();
    assert.equal(message.stop_reason, "refusal");
    assert.equal(message.stop_details?.explanation, "I would rather not.");
    const response = await openaiOf(simulator).responses.stream({ model: "m", input: "hi" }).finalResponse();
    const item = response.output[0];
    assert.ok(item?.type === "message" && item.content[0]?.type === "refusal");
    assert.equal(item.content[0].refusal, "I would rather not.");
  }));

test("a tool of the request is called on request, and its result is answered in text", () =>
  withSimulator(async (simulator) => {
    const client = openaiOf(simulator);
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const tools = [{ type: "function" as const, function: { name: "weather", parameters } }];
    const asked = { role: "user" as const, content: "Please use the tool." };
    const first = await client.chat.completions.create({ model: "m", tools, messages: [asked] });
    const call = first.choices[0]?.message.tool_calls?.[0];
    assert.ok(call?.type === "function" && call.function.arguments === '{"city":"simulated"}');
    const answered = { role: "tool" as const, tool_call_id: call.id, content: "sunny" };
    const said = first.choices[0]?.message;
    assert.ok(said);
    const second = await client.chat.completions.create({ model: "m", tools, messages: [asked, said, answered] });
    assert.equal(second.choices[0]?.finish_reason, "stop");
    assert.match(String(second.choices[0]?.message.content), /simulation/);
  }));
