/**
 * The official SDKs' own types are the newest description of what a request may contain. Each of their members must be
 * in the tables of `src/values/members/`. A new one fails here until it has been checked what it buys.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { MediaCount } from "../../src/accept/envelope/media.ts";
import { MEMBERS } from "../../src/values/members.ts";
import type { Protocol } from "../../src/values/protocol.ts";

const read = (file: string) => readFileSync(`node_modules/${file}`, "utf8");
const CHAT = read("openai/resources/chat/completions/completions.d.ts");
const SHARED = read("openai/resources/shared.d.ts");
const RESPONSES = read("openai/resources/responses/responses.d.ts");
const BETA_RESPONSES = read("openai/resources/beta/responses/responses.d.ts");
const COUNTS = read("openai/resources/responses/input-tokens.d.ts");
const MESSAGES = read("@anthropic-ai/sdk/resources/messages/messages.d.ts");
const BETA = read("@anthropic-ai/sdk/resources/beta/messages/messages.d.ts");

/** The text of a declaration, from its name to the closing brace. A dotted name is searched for in its namespace. */
function declaration(source: string, path: string): string {
  const [space, inner] = path.split(".");
  if (inner !== undefined) return declaration(source.slice(source.search(`declare namespace ${space} `)), inner);
  const name = path;
  const head = new RegExp(`^( *)(?:export )?(?:declare )?interface ${name}\\b`, "m").exec(source);
  assert.ok(head, `${name} is no longer declared`);
  return source.slice(head.index, source.indexOf(`\n${head[1]}}`, head.index));
}

/** The members of an interface, without those that the SDK sends as headers. */
function membersOf(source: string, name: string): string[] {
  const text = declaration(source, name);
  const indent = `${/^ */.exec(text)?.[0]}    `;
  const member = new RegExp(`(\\/\\*\\*(?:(?!\\*\\/)[\\s\\S])*\\*\\/\\s*)?\\n?^${indent}([a-z_]+)\\??:`, "gm");
  return [...text.matchAll(member)]
    .filter(([, comment]) => !comment?.includes("Header param:"))
    .map((match) => match[2] as string);
}

/** The members of every interface of a union. */
function unionMembers(source: string, union: string): string[] {
  return unionNames(source, union).flatMap((name) => {
    const inner = name.split(".").at(-1) as string;
    return membersOf(source, inner);
  });
}

function unionNames(source: string, union: string): string[] {
  const text = new RegExp(`export type ${union} = ([^;]+);`).exec(source)?.[1];
  assert.ok(text, `${union} is no longer declared`);
  return text.split("|").map((name) => name.trim());
}

/** The protocol, the path of the object in a body, and its members according to the SDK. */
const OBJECTS: readonly (readonly [Protocol, string, () => string[]])[] = [
  ["chat", "", () => membersOf(CHAT, "ChatCompletionCreateParamsBase")],
  ["chat", "stream_options", () => membersOf(CHAT, "ChatCompletionStreamOptions")],
  ["chat", "audio", () => membersOf(CHAT, "ChatCompletionAudioParam")],
  ["chat", "prediction", () => membersOf(CHAT, "ChatCompletionPredictionContent")],
  ["chat", "web_search_options", () => membersOf(CHAT, "ChatCompletionCreateParams.WebSearchOptions")],
  ["chat", "prompt_cache_options", () => membersOf(CHAT, "ChatCompletionCreateParams.PromptCacheOptions")],
  ["chat", "moderation", () => membersOf(CHAT, "ChatCompletionCreateParams.Moderation")],
  ["chat", "tools", () => unionMembers(CHAT, "ChatCompletionTool")],
  ["chat", "tools.function", () => membersOf(SHARED, "FunctionDefinition")],
  ["chat", "tool_choice", () => membersOf(CHAT, "ChatCompletionNamedToolChoice")],
  ["chat", "tool_choice", () => membersOf(CHAT, "ChatCompletionAllowedToolChoice")],
  ["chat", "tool_choice", () => membersOf(CHAT, "ChatCompletionNamedToolChoiceCustom")],
  ["chat", "tool_choice.allowed_tools", () => membersOf(CHAT, "ChatCompletionAllowedTools")],
  ["messages", "", () => membersOf(MESSAGES, "MessageCreateParamsBase")],
  ["messages", "", () => membersOf(BETA, "MessageCreateParamsBase")],
  ["messages", "", () => membersOf(BETA, "MessageCountTokensParams")],
  ["messages", "thinking", () => unionMembers(BETA, "BetaThinkingConfigParam")],
  ["messages", "output_config", () => membersOf(BETA, "BetaOutputConfig")],
  ["messages", "cache_control", () => membersOf(BETA, "BetaCacheControlEphemeral")],
  ["messages", "compaction", () => membersOf(BETA, "BetaCompactionConfig")],
  ["messages", "diagnostics", () => membersOf(BETA, "BetaDiagnosticsParam")],
  ["messages", "tool_choice", () => unionMembers(BETA, "BetaToolChoice")],
  ["messages", "tools", () => unionMembers(BETA, "BetaToolUnion")],
  ["messages", "tools", () => unionMembers(MESSAGES, "ToolUnion")],
  ["responses", "", () => membersOf(RESPONSES, "ResponseCreateParamsBase")],
  ["responses", "", () => membersOf(BETA_RESPONSES, "ResponseCreateParamsBase")],
  ["responses", "", () => membersOf(RESPONSES, "ResponseCompactParams")],
  ["responses", "", () => membersOf(COUNTS, "InputTokenCountParams")],
  ["responses", "reasoning", () => membersOf(BETA_RESPONSES, "ResponseCreateParams.Reasoning")],
  ["responses", "reasoning", () => membersOf(SHARED, "Reasoning")],
  ["responses", "text", () => membersOf(RESPONSES, "ResponseTextConfig")],
  ["responses", "image", () => membersOf(RESPONSES, "ResponseCreateParams.Image")],
  ["responses", "moderation", () => membersOf(RESPONSES, "ResponseCreateParams.Moderation")],
  ["responses", "context_management", () => membersOf(RESPONSES, "ResponseCreateParams.ContextManagement")],
  ["responses", "stream_options", () => membersOf(RESPONSES, "ResponseCreateParams.StreamOptions")],
  ["responses", "prompt_cache_options", () => membersOf(RESPONSES, "ResponseCreateParams.PromptCacheOptions")],
  ["responses", "tools", () => unionMembers(RESPONSES, "Tool")],
  ["responses", "tool_choice", () => membersOf(RESPONSES, "ToolChoiceAllowed")],
  ["responses", "tool_choice", () => membersOf(RESPONSES, "ToolChoiceMcp")],
  ["responses", "tool_choice", () => membersOf(RESPONSES, "ToolChoiceCustom")],
];

for (const [protocol, path, members] of OBJECTS) {
  test(`${protocol}: every member of ${path || "a body"} has a meaning`, () => {
    const names = members();
    assert.ok(names.length > 0, "the SDK's types were not understood");
    let shape = MEMBERS[protocol];
    for (const name of path === "" ? [] : path.split(".")) {
      const inner = shape.inside.get(name);
      assert.ok(inner, `${path} has no shape`);
      shape = inner;
    }
    const unlisted = names.filter((name) => !shape.meanings.has(name));
    assert.deepEqual(unlisted, [], "look up what these buy and add them to the list");
  });
}

test("the SDK's types are read completely", () => {
  const counts = [
    membersOf(CHAT, "ChatCompletionCreateParamsBase"),
    membersOf(BETA, "MessageCreateParamsBase"),
    membersOf(RESPONSES, "ResponseCreateParamsBase"),
  ].map((members) => members.length);
  assert.deepEqual(counts, [37, 25, 34]);
  assert.ok(!membersOf(BETA, "MessageCreateParamsBase").includes("betas"), "headers are not members");
});

/** Types whose number of tokens depends, or may depend, on a size. */
const MEASURED = new Set(["image", "document", "input_image", "input_file", "input_audio", "image_url", "file"]);

/** The literal types of the interfaces of a union, including nested unions. */
function typesOf(source: string, union: string): string[] {
  return unionNames(source, union).flatMap((name) => {
    const inner = name.split(".").at(-1) as string;
    if (!new RegExp(`interface ${inner}\\b`).test(source)) return [];
    const type = /\n\s+type\??: ((?:'[a-z_0-9]+'(?: \| )?)+)/.exec(
      declaration(source, inner).replace(/\/\*\*[\s\S]*?\*\//g, ""),
    );
    return (type?.[1] ?? "").split("|").flatMap((word) => word.trim().replaceAll("'", "") || []);
  });
}

test("every kind of block and item that the SDKs send is known, as text or by its size", () => {
  const types = [
    ...typesOf(BETA, "BetaContentBlockParam"),
    ...typesOf(RESPONSES, "ResponseInputItem"),
    ...typesOf(BETA_RESPONSES, "BetaResponseInputItem"),
    ...typesOf(RESPONSES, "ResponseInputContent"),
    ...typesOf(CHAT, "ChatCompletionContentPart"),
  ];
  assert.ok(types.length > 50, String(types.length));
  const unknown = types.filter((type) => {
    const media = new MediaCount();
    media.see({ node: { type }, under: "content" }, true);
    return media.pieces.length > 0 && !MEASURED.has(type);
  });
  assert.deepEqual(unknown, []);
});
