/**
 * The official SDK and the AI SDK with their defaults on an upstream that stores responses: two and three steps by
 * `previous_response_id` and by references, parallel tools and reasoning, whole and streamed.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import type { Behavior } from "../../../../src/simulator/server.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { aiSdkOf, sdkOf, startKeeping } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startKeeping();
});
after(() => here.close());

const STEPS: readonly Behavior[] = [
  {
    thinking: "First the roof.",
    text: "Let me see both.",
    tools: [
      { id: "call_1", name: "look", arguments: { part: "roof" } },
      { id: "call_2", name: "look", arguments: { part: "archive" } },
    ],
    interleave: true,
  },
  { text: "And the cellar.", tools: [{ id: "call_3", name: "look", arguments: { part: "cellar" } }] },
  { text: "All is well." },
];

interface Sent {
  readonly previous_response_id?: string;
  readonly store?: boolean;
  readonly input: readonly { readonly type?: string; readonly id?: string }[];
}

function sentSince(count: number): readonly Sent[] {
  const requests = here.simulator.requests.slice(count - here.simulator.count);
  for (const { json } of requests)
    assert.ok(!JSON.stringify(json).includes("gw1."), "no wrapped id is sent to an upstream");
  return requests.map(({ json }) => json as Sent);
}

type Made = OpenAI.Responses.Response;

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";
  test(`official SDK, ${how}: three steps by previous_response_id, then read, deleted and not found`, async () => {
    const { key } = await here.account();
    const sdk = sdkOf(here, key);
    const turn = async (input: OpenAI.Responses.ResponseInput, previous: string | null): Promise<Made> => {
      const asked = { model: "responses-1", input, previous_response_id: previous };
      return stream ? sdk.responses.stream(asked).finalResponse() : sdk.responses.create(asked);
    };
    const count = here.simulator.count;
    for (const step of STEPS) here.simulator.program(step);
    let made = await turn([{ role: "user", content: "Is all well?" }], null);
    for (let steps = 1; steps < STEPS.length; steps++) {
      const results = made.output.flatMap((item) =>
        item.type === "function_call"
          ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "fine" }]
          : [],
      );
      assert.equal(results.length, steps === 1 ? 2 : 1);
      made = await turn(results, made.id);
    }
    assert.equal(made.output_text, "All is well.");
    const sent = sentSince(count);
    assert.deepEqual(
      sent.map(({ previous_response_id: previous }) => /^resp_[0-9a-f]{32}$/.test(previous ?? "")),
      [false, true, true],
    );
    const read = await sdk.responses.retrieve(made.id);
    assert.deepEqual([read.id, read.output_text], [made.id, made.output_text]);
    const items = [];
    for await (const item of sdk.responses.inputItems.list(made.id, { limit: 3 })) items.push(item);
    assert.ok(items.length >= 6, "the whole conversation, page by page");
    await assert.rejects(sdk.responses.cancel(made.id), OpenAI.BadRequestError);
    await sdk.responses.delete(made.id);
    await assert.rejects(sdk.responses.retrieve(made.id), OpenAI.NotFoundError);
    await assert.rejects(turn([{ role: "user", content: "Go on." }], made.id), OpenAI.BadRequestError);
  });

  test(`official SDK, ${how}: another account finds nothing`, async () => {
    const [own, other] = [await here.account(), await here.account()];
    const made = await sdkOf(here, own.key).responses.create({ model: "responses-1", input: "Hello." });
    const stranger = sdkOf(here, other.key);
    await assert.rejects(stranger.responses.retrieve(made.id), OpenAI.NotFoundError);
    await assert.rejects(stranger.responses.delete(made.id), OpenAI.NotFoundError);
    await assert.rejects(stranger.responses.cancel(made.id), OpenAI.NotFoundError);
    const asked = { model: "responses-1", input: "What was said?", previous_response_id: made.id, stream };
    await assert.rejects(stranger.responses.create(asked as never) as Promise<unknown>, OpenAI.BadRequestError);
    assert.equal((await sdkOf(here, own.key).responses.retrieve(made.id)).id, made.id);
  });

  for (const previous of [false, true]) {
    const by = previous ? "previousResponseId" : "its references";
    test(`AI SDK, ${how}: a tool loop of three steps and a second question, by ${by}`, async () => {
      const { key } = await here.account();
      const count = here.simulator.count;
      for (const step of STEPS) here.simulator.program(step);
      const first = await run(key, stream, [{ role: "user", content: "Is all well?" }], undefined);
      assert.equal(first.text, "All is well.");
      here.simulator.program({ text: "You are welcome." });
      const thanks: ModelMessage = { role: "user", content: "Thank you." };
      const second = previous
        ? await run(key, stream, [thanks], first.responseId)
        : await run(key, stream, [...first.messages, thanks], undefined);
      assert.equal(second.text, "You are welcome.");
      const sent = sentSince(count);
      assert.equal(sent.length, 4);
      assert.ok(sent.every(({ store }) => store === undefined));
      const references = (sent[2]?.input ?? []).filter(({ type }) => type === "item_reference");
      assert.ok(references.length >= 3, "texts and reasoning are sent as references with the ids of the server");
      assert.equal(sent[3]?.input.length, previous ? 1 : 12);
      assert.equal(sent[3]?.previous_response_id === undefined, !previous);
    });
  }
}

const tools = {
  look: tool({
    description: "Looks.",
    inputSchema: jsonSchema<{ part: string }>({ type: "object", properties: { part: { type: "string" } } }),
    execute: async ({ part }) => `${part}: fine`,
  }),
};

async function run(key: string, stream: boolean, messages: ModelMessage[], previousResponseId: string | undefined) {
  const asked = {
    model: aiSdkOf(here, key).responses("responses-1"),
    messages,
    tools,
    stopWhen: stepCountIs(5),
    maxRetries: 0,
    providerOptions: { openai: { ...(previousResponseId ? { previousResponseId } : {}) } },
  };
  const failures: unknown[] = [];
  const done = stream
    ? streamText({ ...asked, onError: ({ error }) => void failures.push(error) })
    : await generateText(asked);
  const [text, said, metadata] = [await done.text, await done.responseMessages, await done.providerMetadata];
  assert.deepEqual(failures, []);
  const responseId = metadata?.openai?.responseId as string;
  return { text, messages: [...messages, ...said], responseId };
}
