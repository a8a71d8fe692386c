/**
 * The AI SDK with its defaults (`store` unset): in the second step of a tool loop it sends references to what it
 * received in the first. Each upstream protocol, whole and streamed, three steps and a second question, parallel tools
 * and reasoning: every server gets back its own output (docs/decisions/references-carry-what-they-name.md).
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, streamText, tool } from "ai";
import type { Behavior } from "../../../../src/simulator/server.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { type Json, listOf, modelOn, PROTOCOL_LIST, seenBody, startDirections } from "../directions/rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startDirections();
});

after(() => here.close());

const THOUGHT = "First the roof, then the archive \u{1f3e0}.";
const STEPS: readonly Behavior[] = [
  {
    thinking: THOUGHT,
    text: "Let me see both.",
    tools: [
      { id: "toolu_01look", name: "look", arguments: { part: "roof" } },
      { id: "toolu_02look", name: "look", arguments: { part: "archive" } },
    ],
    interleave: true,
  },
  { text: "And the cellar.", tools: [{ id: "toolu_03look", name: "look", arguments: { part: "cellar" } }] },
  { text: "All is well." },
];
const SCHEMA = {
  type: "object" as const,
  properties: { part: { type: "string" as const } },
  required: ["part"],
  additionalProperties: false,
};
const tools = {
  look: tool({
    description: "Looks.",
    inputSchema: jsonSchema<{ part: string }>(SCHEMA),
    execute: async ({ part }) => `${part}: fine`,
  }),
};

interface Asking {
  readonly upstream: Protocol;
  readonly stream: boolean;
  readonly key: string;
  /** Whether the SDK treats the model as a reasoning model, which it decides by the names that it knows. */
  readonly reasons: boolean;
}

interface Told {
  readonly text: string;
  readonly messages: readonly ModelMessage[];
}

async function ask({ upstream, stream, key, reasons }: Asking, messages: readonly ModelMessage[]): Promise<Told> {
  const openai = createOpenAI({ baseURL: `${here.url}/v1`, apiKey: key });
  const asked = {
    model: openai.responses(modelOn(upstream)),
    messages: [...messages],
    tools,
    stopWhen: stepCountIs(5),
    maxRetries: 0,
    ...(reasons ? { providerOptions: { openai: { reasoningEffort: "high", forceReasoning: true } } } : {}),
  };
  if (!stream) {
    const { text, responseMessages } = await generateText(asked);
    return { text, messages: [...messages, ...responseMessages] };
  }
  const failures: unknown[] = [];
  const running = streamText({ ...asked, onError: ({ error }) => void failures.push(error) });
  const [text, responseMessages] = [await running.text, await running.responseMessages];
  assert.deepEqual(failures, []);
  return { text, messages: [...messages, ...responseMessages] };
}

/** What a server received of the conversation, as one text. */
const SENT: Readonly<Record<Protocol, (body: Json) => string>> = {
  chat: (body) => JSON.stringify(body.messages),
  messages: (body) => JSON.stringify(body.messages),
  responses: (body) => JSON.stringify(body.input),
};

/** What the server's own protocol returns of its reasoning, which only the server can have produced. */
const OWN_REASONING: Readonly<Record<Protocol, (body: Json) => unknown>> = {
  chat: (body) => listOf(body.messages).find(({ role }) => role === "assistant")?.reasoning_content,
  messages: (body) => {
    const said = listOf(body.messages).find(({ role }) => role === "assistant");
    const [block] = listOf(said?.content);
    return block?.type === "thinking" &&
      Buffer.from(String(block.signature), "base64").toString().startsWith("simulated")
      ? block.thinking
      : undefined;
  },
  responses: (body) => {
    const item = listOf(body.input).find(({ type }) => type === "reasoning");
    const opaque = Buffer.from(String(item?.encrypted_content), "base64").toString();
    return opaque.startsWith("simulated") ? listOf(item?.summary)[0]?.text : undefined;
  },
};

for (const upstream of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    for (const reasons of [false, true]) {
      const name = `${upstream} upstream, ${stream ? "streamed" : "whole"}, ${reasons ? "a model that reasons" : "defaults"}`;
      test(name, async () => {
        const { key } = await here.account();
        const asking = { upstream, stream, key, reasons };
        const before = here.simulator.requests.length;
        for (const step of STEPS) here.simulator.program(step);
        const first = await ask(asking, [{ role: "user", content: "Is all well?" }]);
        assert.equal(first.text, "All is well.");
        here.simulator.program({ text: "You are welcome." });
        const second = await ask(asking, [...first.messages, { role: "user", content: "Thank you." }]);
        assert.equal(second.text, "You are welcome.");
        const bodies = here.simulator.requests.slice(before).map(seenBody);
        assert.equal(bodies.length, 4, "three steps and one more question were sent");
        for (const [index, body] of bodies.entries()) {
          const sent = SENT[upstream](body);
          assert.ok(!sent.includes("gw1.") && !sent.includes("item_reference"), "no reference is sent to an upstream");
          if (index === 0) continue;
          assert.ok(sent.includes("Let me see both."), "the text of the first step is sent");
          for (const id of ["toolu_01look", "toolu_02look"]) {
            assert.equal(sent.split(`"${id}"`).length, 3, `${id}: one call and one result`);
          }
          // A responses server returns its reasoning only on request, and models that do not reason refuse that
          // request.
          const thought = reasons || upstream !== "responses" ? THOUGHT : undefined;
          assert.equal(OWN_REASONING[upstream](body), thought, `step ${index + 1}: the reasoning of this step`);
        }
        const last = SENT[upstream](bodies[3] as Json);
        const said = ["Let me see both.", "And the cellar.", "All is well.", "Thank you."];
        assert.deepEqual(
          said.map((text) => last.split(text).length),
          [2, 2, 2, 2],
          "each text is sent once",
        );
        assert.deepEqual(
          [...said].sort((a, b) => last.indexOf(a) - last.indexOf(b)),
          said,
          "the texts are sent in order",
        );
      });
    }
  }
}
