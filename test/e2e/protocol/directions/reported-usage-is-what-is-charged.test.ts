/**
 * ARCHITECTURE.md promise 3 and docs/translation-rules.md rule 44, in all nine directions, whole and streamed: a reply
 * ends with a usage, and that usage is charged, whether the upstream counts everything, a part or nothing.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import fc from "fast-check";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import { type JsonObject, objectOf } from "../../../../src/values/json-object.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, framesOf, memoOf, PROTOCOL_LIST, usageLines } from "../whole/asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere();
  account = await here.account({ usd: "1000" });
});
after(() => here.close());

/** Input and output as a client adds them up. */
interface Told {
  readonly input: number;
  readonly output: number;
}

const num = (value: unknown): number => {
  assert.ok(Number.isSafeInteger(value), `a count is ${value}`);
  return value as number;
};

/** The usage of a whole reply, or of the end of a stream. */
const READ: Readonly<Record<Protocol, (usage: JsonObject) => Told>> = {
  chat: (usage) => ({ input: num(usage.prompt_tokens), output: num(usage.completion_tokens) }),
  messages: (usage) => ({
    input: num(usage.input_tokens) + num(usage.cache_read_input_tokens) + num(usage.cache_creation_input_tokens),
    output: num(usage.output_tokens),
  }),
  responses: (usage) => ({ input: num(usage.input_tokens), output: num(usage.output_tokens) }),
};

function usageOfStream(client: Protocol, text: string): JsonObject {
  const events = framesOf(text)
    .filter(({ data }) => data.startsWith("{"))
    .map(({ data }) => JSON.parse(data) as JsonObject);
  if (client === "responses") return objectOf(events.at(-1)?.response)?.usage as JsonObject;
  if (client === "chat") {
    const counted = events.filter((chunk) => objectOf(chunk.usage) !== undefined);
    assert.ok(text.trimEnd().endsWith("data: [DONE]"));
    return counted.at(-1)?.usage as JsonObject;
  }
  assert.equal(events.at(-1)?.type, "message_stop");
  const started = events.find(({ type }) => type === "message_start")?.message as JsonObject;
  const deltas = events.filter(({ type }) => type === "message_delta");
  // As the official SDK computes it: a later count replaces an earlier one, and each event has one.
  const all = [started.usage, ...deltas.map(({ usage }) => usage)].map((usage) => {
    assert.ok(objectOf(usage), "an event has no usage");
    return Object.fromEntries(Object.entries(usage as JsonObject).filter(([, count]) => count !== null));
  });
  return Object.assign({}, ...all) as JsonObject;
}

const OPTIONS: Readonly<Record<Protocol, JsonObject>> = {
  chat: { stream_options: { include_usage: true } },
  messages: {},
  responses: {},
};

const counts: fc.Arbitrary<Partial<Behavior>> = fc.oneof(
  { weight: 2, arbitrary: fc.constant({ noUsage: true }) },
  fc.record({
    usage: fc.record({
      input: fc.constantFrom(0, 1, 77, 5_000),
      output: fc.constantFrom(0, 1, 40, 399),
    }),
  }),
);
const replies: fc.Arbitrary<Behavior> = fc
  .tuple(counts, fc.constantFrom("", "Hi.", "word ".repeat(120), "日本語のテキスト".repeat(9)), fc.boolean())
  .map(([count, text, calls]) => ({
    ...count,
    ...(text === "" && !calls ? { text: "x" } : { text }),
    ...(calls ? { tools: [{ name: "f", arguments: { a: "b" } }] } : {}),
  }));

const TOOLS: Readonly<Record<Protocol, readonly JsonObject[]>> = {
  chat: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
  messages: [{ name: "f", input_schema: { type: "object" } }],
  responses: [{ type: "function", name: "f", parameters: { type: "object" }, strict: false }],
};

for (const client of PROTOCOL_LIST) {
  for (const upstream of PROTOCOL_LIST) {
    for (const model of client === upstream ? [`${upstream}-1`, `${upstream}-alias`] : [`${upstream}-1`]) {
      test(`${client} client, ${model}: the reported usage is what is charged`, async () => {
        await fc.assert(
          fc.asyncProperty(replies, fc.boolean(), async (behavior, stream) => {
            here.simulator.program(behavior);
            const fields = { model, stream, tools: TOOLS[client], ...(stream ? OPTIONS[client] : {}) };
            const reply = await ask(here, client, account.key, fields);
            const text = await reply.text();
            assert.equal(reply.status, 200, text);
            const usage = stream ? usageOfStream(client, text) : ((JSON.parse(text) as JsonObject).usage as JsonObject);
            assert.ok(usage, `no usage: ${text.slice(-600)}`);
            await assertAtRest(here, account);
            const memo = memoOf((await usageLines(here, account)).at(-1));
            const input = num(memo.input) + num(memo.cached_input) + num(memo.cache_write) + num(memo.cache_write_1h);
            assert.deepEqual(READ[client](usage), { input, output: num(memo.output) });
          }),
          { numRuns: 12, seed: 15 },
        );
      });
    }
  }
}

test("the messages SDK parses a stream and a reply whose server counts nothing", async () => {
  const sdk = new Anthropic({ baseURL: here.url, apiKey: account.key, maxRetries: 0 });
  const body = { model: "messages-1", max_tokens: 100, messages: [{ role: "user" as const, content: "hello" }] };
  here.simulator.program({ text: "Hello there.", noUsage: true }, { times: 2 });
  const whole = await sdk.messages.create(body);
  const streamed = await sdk.messages.stream(body).finalMessage();
  for (const { usage } of [whole, streamed]) assert.ok(usage.input_tokens > 0 && usage.output_tokens > 0);
  assert.deepEqual(streamed.usage.output_tokens, whole.usage.output_tokens);
});

test("a stream that counts everything passes byte for byte", async () => {
  for (const protocol of PROTOCOL_LIST) {
    here.simulator.program({ text: "Hello there.", usage: { input: 9, output: 4 } });
    const fields = { stream: true, ...OPTIONS[protocol] };
    const passed = await (await ask(here, protocol, account.key, fields)).text();
    const body = here.simulator.requests.at(-1)?.body.toString() ?? "";
    here.simulator.program({ text: "Hello there.", usage: { input: 9, output: 4 } });
    const path = { chat: "/chat/completions", messages: "/messages", responses: "/responses" }[protocol];
    const direct = await fetch(here.simulator.url + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: "Bearer x",
        "x-api-key": "x",
        "anthropic-version": "1",
      },
      body,
    });
    const still = (text: string) =>
      text.replaceAll(/"(?:id|item_id)":"[^"]*"/g, "ID").replaceAll(/"(?:created|created_at|completed_at)":\d+/g, "AT");
    assert.equal(still(passed), still(await direct.text()));
  }
});
