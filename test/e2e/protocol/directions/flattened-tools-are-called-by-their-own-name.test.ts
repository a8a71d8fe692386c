/**
 * Freeform tools and tools in namespaces on upstreams that have only functions: they are flattened in the request, and
 * in the reply called by their own name, namespace and kind, as Codex requires.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import OpenAI from "openai";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { type Json, listOf, modelOn, recordOf, seenBody, startDirections } from "./rig.ts";

let here: GatewayHere;
let account: TestAccount;
let sdk: OpenAI;

before(async () => {
  here = await startDirections();
  account = await here.account();
  sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
});

after(() => here.close());

const GRAMMAR = { type: "grammar", syntax: "lark", definition: 'start: "*** Begin Patch" /.+/' };
const PARAMETERS = { type: "object", properties: { path: { type: "string" } } };
const read = { type: "function", name: "read", description: "Reads.", parameters: PARAMETERS, strict: false };
const patch = { type: "custom", name: "apply_patch", description: "Patches.", format: GRAMMAR };
const exec = { type: "custom", name: "exec", description: "Runs." };

/** `files__read` is the flattened form of `read` in `files`: the plain tool of that name must stay distinct. */
const TOOLS = [patch, { ...read, name: "files__read" }, { type: "namespace", name: "files", tools: [read, exec] }];

const PATCH = "*** Begin Patch\n+ \u00fcber \u{1f600}\n*** End Patch";

/** What the model calls, in the order of the upstream's tools, and what the client must get. */
const EXPECTED = [
  { type: "custom_tool_call", call_id: "call_1", name: "apply_patch", namespace: undefined, said: PATCH },
  { type: "function_call", call_id: "call_2", name: "files__read", namespace: undefined, said: '{"path":"plain"}' },
  { type: "function_call", call_id: "call_3", name: "read", namespace: "files", said: '{"path":"nested"}' },
  { type: "custom_tool_call", call_id: "call_4", name: "exec", namespace: "files", said: "ls -l" },
] as const;
const ARGUMENTS = [{ input: PATCH }, { path: "plain" }, { path: "nested" }, { input: "ls -l" }];

const PLACES: Readonly<
  Record<string, (tools: readonly Json[]) => { readonly tools?: unknown; readonly input: Json[] }>
> = {
  "the tools field": (tools) => ({ tools, input: [] }),
  "an additional_tools item": (tools) => ({ input: [{ type: "additional_tools", role: "developer", tools }] }),
};

for (const upstream of ["chat", "messages"] as const) {
  for (const [place, offer] of Object.entries(PLACES)) {
    for (const stream of [false, true]) {
      test(`${upstream} upstream, tools in ${place}, ${stream ? "streamed" : "whole"}`, async () => {
        const { tools, input } = offer(TOOLS);
        const question: Json = { role: "user", content: "go" };
        const ask = (items: readonly Json[]) =>
          turn({ model: modelOn(upstream), tools, input: items, store: false }, stream);

        // The upstream's request has its names for the tools; an answer without a tool call reveals them.
        await ask([...input, question]);
        const names = offeredNames(seenBody(here.simulator.requests.at(-1)));
        assert.equal(new Set(names).size, 4);
        assert.deepEqual([names[0], names[1], names[3]], ["apply_patch", "files__read", "files__exec"]);

        const calls = names.map((name, i) => ({ id: `call_${i + 1}`, name, arguments: ARGUMENTS[i] }));
        here.simulator.program({ tools: calls, interleave: true });
        const first = await ask([...input, question]);
        assert.deepEqual(first.output.map(calledOf), EXPECTED);

        here.simulator.program({ text: "done" });
        const outputs = EXPECTED.map(({ type, call_id }) => ({ type: `${type}_output`, call_id, output: "ok" }));
        const second = await ask([...input, question, ...(first.output as unknown as Json[]), ...outputs]);
        assert.equal(second.output_text, "done");
        assert.deepEqual(
          HISTORY[upstream](seenBody(here.simulator.requests.at(-1))),
          names.map((name, i) => [name, ARGUMENTS[i]]),
        );
      });
    }
  }
}

function turn(ask: Json, stream: boolean): Promise<OpenAI.Responses.Response> {
  const body = ask as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming;
  return stream ? sdk.responses.stream({ ...body, stream: true }).finalResponse() : sdk.responses.create(body);
}

function calledOf(output: OpenAI.Responses.ResponseOutputItem): unknown {
  const { type, call_id, name, namespace, ...rest } = output as unknown as Json;
  return { type, call_id, name, namespace, said: type === "custom_tool_call" ? rest.input : rest.arguments };
}

function offeredNames(body: Json): string[] {
  return listOf(body.tools).map((tool) => String(tool.name ?? recordOf(tool.function).name));
}

/** Names and arguments of the calls in an upstream's history. */
const HISTORY: Readonly<Record<"chat" | "messages", (body: Json) => unknown>> = {
  chat(body) {
    const said = listOf(body.messages).find((message) => message.role === "assistant");
    return listOf(said?.tool_calls).map((call) => {
      const { name, arguments: text } = recordOf(call.function);
      return [name, JSON.parse(String(text))];
    });
  },
  messages(body) {
    const said = listOf(body.messages).find((message) => message.role === "assistant");
    return listOf(said?.content)
      .filter((block) => block.type === "tool_use")
      .map(({ name, input }) => [name, input]);
  },
};
