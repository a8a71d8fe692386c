/**
 * Requests in the shape in which Claude Code and Codex send them (recorded in November 2026), on upstreams of another
 * protocol: they are accepted, and answered with streams that the official SDKs parse.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { type Json, listOf, modelOn, seenBody, startDirections } from "./rig.ts";

let here: GatewayHere;
let account: TestAccount;

before(async () => {
  here = await startDirections();
  account = await here.account();
});

after(() => here.close());

const CACHED = { cache_control: { type: "ephemeral" } };
const BILLING = "x-anthropic-billing-header: cc_version=2.1.329.abc; cc_entrypoint=sdk-cli;";
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4//8/AwAI/AL+p5qgoAAAAABJRU5ErkJggg==";
const AGENT_TOOLS = [
  { name: "Bash", description: "Runs.", input_schema: { type: "object", properties: { command: { type: "string" } } } },
  { name: "DeferredToolPlaceholder", description: "Later.", input_schema: { type: "object" }, defer_loading: true },
  { name: "ToolSearch", description: "Finds tools.", input_schema: { type: "object" }, eager_input_streaming: true },
  { name: "mcp__notes__list", description: "Lists.", input_schema: { type: "object" }, defer_loading: true },
];

/** The third turn of a session: a tool search, a picture that was read, and system text at the end. */
function claudeCode(model: string): Json {
  return {
    model,
    max_tokens: 32_000,
    system: [
      { type: "text", text: BILLING },
      { type: "text", text: "You are an agent.", ...CACHED },
    ],
    messages: [
      { role: "user", content: [{ type: "text", text: "Look around.", ...CACHED }] },
      { role: "system", content: [{ type: "text", text: "<context>the date</context>" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "", signature: "EqQBCkYIBxgCKkA" },
          {
            type: "tool_use",
            id: "toolu_1",
            name: "ToolSearch",
            input: { query: "notes" },
            caller: { type: "direct" },
          },
          { type: "tool_use", id: "toolu_2", name: "Bash", input: { command: "cat a.png" } },
        ],
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "toolu_1",
            content: [{ type: "tool_reference", tool_name: "mcp__notes__list" }],
          },
          {
            type: "tool_result",
            tool_use_id: "toolu_2",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } }],
            ...CACHED,
          },
        ],
      },
      { role: "system", content: [{ type: "text", text: "<total_tokens>190000 left</total_tokens>" }] },
    ],
    tools: AGENT_TOOLS,
    thinking: { type: "adaptive", display: "omitted" },
    output_config: { effort: "high" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    metadata: { user_id: '{"device_id":"d","account_uuid":"","session_id":"s"}' },
    safeguards: { type: "auto" },
  };
}

for (const upstream of ["chat", "responses"] as const) {
  test(`Claude Code on a ${upstream} upstream`, async () => {
    const sdk = new Anthropic({ baseURL: here.url, authToken: account.key, apiKey: null, maxRetries: 0 });
    here.simulator.program({
      thinking: "hidden thoughts",
      text: "On it.",
      tools: [
        { name: "Bash", arguments: { command: "ls" } },
        { name: "mcp__notes__list", arguments: {} },
      ],
      interleave: true,
    });
    const headers = {
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27",
      "x-app": "cli",
    };
    const body = claudeCode(modelOn(upstream)) as unknown as Anthropic.MessageStreamParams;
    const stream = sdk.messages.stream(body, { headers, query: { beta: "true" } });
    const final = await stream.finalMessage();
    assert.equal(final.stop_reason, "tool_use");
    const shown = final.content.filter((block) => block.type === "thinking").map((block) => block.thinking);
    assert.equal(shown.join(""), "", "display: omitted");
    assert.deepEqual(
      final.content.flatMap((block): unknown[] => {
        if (block.type === "text") return [block.text];
        return block.type === "tool_use" ? [[block.name, block.input]] : [];
      }),
      ["On it.", ["Bash", { command: "ls" }], ["mcp__notes__list", {}]],
    );
    const seen = JSON.stringify(seenBody(here.simulator.requests.at(-1)));
    assert.ok(!seen.includes("billing-header"), "a line that changes with each request would spoil the prompt cache");
    for (const text of ["You are an agent.", "the date", "190000 left", "mcp__notes__list", PIXEL]) {
      assert.ok(seen.includes(text), text);
    }
    assert.ok(!seen.includes("EqQBCkYIBxgCKkA"), "a signature of another vendor is not sent");
  });
}

test("a request of Claude Code whose only tool is a vendor's web search is refused by name on a chat upstream", async () => {
  const sdk = new Anthropic({ baseURL: here.url, apiKey: account.key, maxRetries: 0 });
  const tools = [{ type: "web_search_20250305" as const, name: "web_search" as const, max_uses: 8 }];
  const messages = [{ role: "user" as const, content: "Search." }];
  const asked = here.simulator.count;
  const refused = sdk.messages.stream({ model: modelOn("chat"), max_tokens: 900, tools, messages }).finalMessage();
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError);
    assert.ok(error.message.includes("tools.0"), error.message);
    return true;
  });
  assert.equal(here.simulator.count, asked);
});

const CODEX_TOOLS: readonly Json[] = [
  {
    type: "function",
    name: "shell",
    description: "Runs.",
    strict: false,
    parameters: { type: "object", properties: {} },
  },
  {
    type: "custom",
    name: "apply_patch",
    description: "Patches.",
    format: { type: "grammar", syntax: "lark", definition: "start: /.+/" },
  },
  {
    type: "namespace",
    name: "mcp__notes",
    description: "Notes.",
    tools: [{ type: "function", name: "list", description: "Lists.", strict: null, parameters: { type: "object" } }],
  },
  { type: "web_search", external_web_access: false },
  { type: "tool_search", execution: "client", description: "Finds tools.", parameters: { type: "object" } },
];

/** The second turn of a session; `lite` is how models named gpt-6.x get their tools. */
function codex(model: string, lite: boolean): Json {
  const tools = lite ? CODEX_TOOLS.filter((tool) => tool.type !== "web_search") : CODEX_TOOLS;
  const before = lite ? [{ type: "additional_tools", role: "developer", tools }] : [];
  return {
    model,
    ...(lite ? {} : { tools, tool_choice: "auto", parallel_tool_calls: true }),
    input: [
      ...before,
      { type: "message", role: "developer", content: [{ type: "input_text", text: "You are Codex." }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "<environment_context/>" }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "List the files." }] },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "a summary" }],
        content: null,
        encrypted_content: "gAAAAABforeign",
      },
      {
        type: "function_call",
        id: "fc_1",
        status: "completed",
        name: "shell",
        arguments: '{"command":["ls"]}',
        call_id: "call_1",
      },
      {
        type: "custom_tool_call",
        id: "ctc_1",
        status: "completed",
        name: "apply_patch",
        input: "***",
        call_id: "call_2",
      },
      {
        type: "function_call_output",
        call_id: "call_1",
        output: [
          { type: "input_text", text: "a.png" },
          { type: "input_image", image_url: `data:image/png;base64,${PIXEL}`, detail: "high" },
        ],
      },
      { type: "custom_tool_call_output", call_id: "call_2", output: "patch failed" },
    ],
    stream: true,
    store: false,
    include: ["reasoning.encrypted_content"],
    reasoning: { effort: "medium", summary: "auto", context: "auto" },
    text: { verbosity: "low" },
    prompt_cache_key: "0199-thread",
    client_metadata: { originator: "codex_exec" },
  };
}

for (const upstream of ["chat", "messages"] as const) {
  for (const lite of [false, true]) {
    test(`Codex on a ${upstream} upstream${lite ? ", tools in an item" : ""}`, async () => {
      const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
      here.simulator.program({
        thinking: "Two calls.",
        tools: [
          { name: "mcp__notes__list", arguments: { all: true } },
          { name: "apply_patch", arguments: { input: "*** Begin Patch" } },
          { name: "tool_search", arguments: { query: "git" } },
        ],
        interleave: true,
      });
      const body = codex(modelOn(upstream), lite) as unknown as OpenAI.Responses.ResponseCreateParamsStreaming;
      const headers = { originator: "codex_exec", "session-id": "s", "x-codex-turn-metadata": "{}" };
      const final = await sdk.responses.stream(body, { headers }).finalResponse();
      assert.equal(final.status, "completed");
      const [thought, ...calls] = final.output as unknown as Json[];
      assert.equal(thought?.type, "reasoning");
      assert.ok(String(thought?.encrypted_content).startsWith("gw1."));
      assert.deepEqual(calls.map(essence), [
        { type: "function_call", name: "list", namespace: "mcp__notes", said: { all: true } },
        { type: "custom_tool_call", name: "apply_patch", namespace: undefined, said: "*** Begin Patch" },
        { type: "tool_search_call", name: undefined, namespace: undefined, said: { query: "git" } },
      ]);
      const seen = JSON.stringify(seenBody(here.simulator.requests.at(-1)));
      for (const text of ["You are Codex.", "List the files.", "patch failed", PIXEL])
        assert.ok(seen.includes(text), text);
      assert.ok(!seen.includes("gAAAAABforeign"), "reasoning of another vendor is not sent");
    });
  }

  test(`Codex compacts on a ${upstream} upstream: without tools no member about tools is sent`, async () => {
    const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
    here.simulator.program({ text: "A summary." });
    const final = await sdk.responses
      .stream({
        model: modelOn(upstream),
        input: [{ role: "user", content: "Summarise." }],
        tools: [],
        tool_choice: "auto",
        parallel_tool_calls: false,
        store: false,
      })
      .finalResponse();
    assert.equal(final.output_text, "A summary.");
    const body = seenBody(here.simulator.requests.at(-1));
    for (const member of ["tools", "tool_choice", "parallel_tool_calls"]) assert.ok(!(member in body), member);
    assert.equal(listOf(body.messages).length, 1);
  });
}

function essence(item: Json): unknown {
  const said = item.input ?? item.arguments;
  const json = typeof said === "string" && said.startsWith("{") ? JSON.parse(said) : said;
  return { type: item.type, name: item.name, namespace: item.namespace, said: json };
}
