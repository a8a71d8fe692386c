/**
 * Requests of real clients, as recorded through this gateway (recorded.ts), are answered by an upstream of each
 * protocol that refuses what the vendors refuse, whole and streamed: with the same text, the same call, and a charge
 * that equals the usage reported to the client.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { PROTOCOLS, type Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { assertAtRest, framesOf, memoOf, usageLines } from "../whole/asking.ts";
import { RECORDED, RECORDED_BY, SINGLE } from "./recorded.ts";
import { type Json, modelOn, PROTOCOL_LIST, startDirections } from "./rig.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startDirections();
  account = await here.account({ usd: "1000", tag: RECORDED_BY });
});
after(() => here.close());

/** What a client parses from an answer. */
interface Told {
  readonly text: string;
  readonly call: unknown;
  readonly tokens: readonly [unknown, unknown];
}

const WHOLE: Readonly<Record<Protocol, (body: Json) => Told>> = {
  chat({ choices, usage }) {
    const [{ message }] = choices as [{ message: { content: string; tool_calls?: { function: Json }[] } }];
    const call = message.tool_calls?.[0]?.function;
    const { prompt_tokens, completion_tokens } = usage as Json;
    return { text: message.content, call: callOf(call), tokens: [prompt_tokens, completion_tokens] };
  },
  messages({ content, usage }) {
    const blocks = content as Json[];
    const text = blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
    const call = blocks.find(({ type }) => type === "tool_use");
    const { input_tokens, output_tokens } = usage as Json;
    return { text, call: call && { name: call.name, input: call.input }, tokens: [input_tokens, output_tokens] };
  },
  responses({ output, usage }) {
    const items = output as Json[];
    const parts = items.flatMap((item) => (item.type === "message" ? (item.content as Json[]) : []));
    const { input_tokens, output_tokens } = usage as Json;
    return {
      text: parts.map(({ text }) => text).join(""),
      call: callOf(items.find(({ type }) => type === "function_call")),
      tokens: [input_tokens, output_tokens],
    };
  },
};

function callOf(call: Json | undefined): unknown {
  return call && { name: call.name, input: JSON.parse(String(call.arguments)) };
}

/** The text of a stream's deltas. */
const DELTA: Readonly<Record<Protocol, (event: Json) => unknown>> = {
  chat: ({ choices }) => ((choices as Json[] | undefined)?.[0]?.delta as Json | undefined)?.content,
  messages: ({ type, delta }) => (type === "content_block_delta" ? (delta as Json).text : undefined),
  responses: ({ type, delta }) => (type === "response.output_text.delta" ? delta : undefined),
};

/** A function of the client's own that the body offers, if any. */
function offered(body: Json): string | undefined {
  for (const tool of (body.tools ?? []) as Json[]) {
    const { type = "function", name, function: inner } = tool as { type?: string; name?: string; function?: Json };
    if (type === "function" || type === "custom") return String(inner?.name ?? name);
  }
  return undefined;
}

async function send(protocol: Protocol, body: Json): Promise<Response> {
  const { path } = PROTOCOLS[protocol];
  const headers = { "content-type": "application/json", authorization: `Bearer ${account.key}` };
  return fetch(here.url + path, { method: "POST", headers, body: JSON.stringify(body) });
}

const TEXT = "R\u00f6\u00f6f and archive are well \u{1f3e0}.";

test("there are sessions of several clients in all protocols", () => {
  assert.ok(RECORDED.length >= 28 && RECORDED.every(({ steps }) => steps.length === 3));
  const protocols = new Set(RECORDED.map(({ protocol }) => protocol));
  assert.deepEqual([...protocols].sort(), [...PROTOCOL_LIST].sort());
});

for (const { name, protocol, steps } of [...RECORDED, ...SINGLE]) {
  for (const [index, step] of steps.entries()) {
    test(`${name}, ${protocol}, step ${index + 1} of ${steps.length}`, async () => {
      here.simulator.clearPrograms();
      const tool = offered(step);
      const tools = tool === undefined ? [] : [{ id: "call_0x", name: tool, arguments: { part: "roof" } }];
      const said: Omit<Told, "tokens">[] = [];
      for (const upstream of PROTOCOL_LIST) {
        const { stream_options: _, ...plain } = step;
        here.simulator.program({ text: TEXT, tools, usage: { input: 70, output: 30 } });
        const whole = await send(protocol, { ...plain, model: modelOn(upstream), stream: false });
        assert.equal(whole.status, 200, `${upstream}: ${await whole.clone().text()}`);
        const { tokens, ...told } = WHOLE[protocol]((await whole.json()) as Json);
        said.push(told);
        here.simulator.program({ text: TEXT, tools, usage: { input: 70, output: 30 }, chunkBytes: 7 });
        const streamed = await send(protocol, { ...step, model: modelOn(upstream), stream: true });
        assert.equal(streamed.status, 200, upstream);
        const events = framesOf(await streamed.text()).flatMap(({ data }) =>
          data.startsWith("{") ? [JSON.parse(data) as Json] : [],
        );
        assert.equal(events.map((event) => DELTA[protocol](event) ?? "").join(""), TEXT, `${upstream}, streamed`);
        for (const reply of [whole, streamed]) await here.requestEnd(reply.headers.get("x-request-id") as string);
        const bills = (await usageLines(here, account)).slice(-2).map(memoOf);
        for (const bill of bills)
          assert.deepEqual([bill.input, bill.output], tokens, `${upstream}: the reported usage is the charged usage`);
      }
      for (const one of said) assert.deepEqual(one, { text: TEXT, call: said[0]?.call });
      assert.equal(said[0]?.call !== undefined, tool !== undefined);
    });
  }
}

test("no hold is left", async () => {
  // Every request was waited for until its charge.
  await assertAtRest(here, account);
});
