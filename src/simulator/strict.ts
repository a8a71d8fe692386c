/**
 * What the vendors refuse in addition to missing fields: unknown top-level fields, tool calls and results that do not
 * pair up, blocks in the wrong position. With `strict: true` the simulator thereby checks translated requests; without
 * it, any request with its required fields is served.
 */

import type { JsonObject } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";
import { list, object } from "./conversation.ts";
import type { ErrorWords } from "./errors.ts";

const KNOWN: Readonly<Record<Protocol, ReadonlySet<string>>> = {
  chat: words(`
    audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages
    metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
    prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier
    stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
    web_search_options`),
  messages: words(`
    billing_policy cache_control compaction container context_management diagnostics fallback_credit_token fallbacks
    inference_geo max_tokens mcp_servers messages metadata model output_config output_format service_tier speed
    stop_sequences stream system temperature thinking thread tool_choice tools top_k top_p`),
  responses: words(`
    access_programs background client_metadata context_management conversation image include input instructions
    max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt
    prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream
    stream_options temperature text tool_choice tools top_logprobs top_p truncation user`),
};

/**
 * The first problem that a vendor would refuse in a request that has its required fields; undefined if there is none.
 */
export function strictProblem(protocol: Protocol, body: JsonObject): ErrorWords | undefined {
  const unknown = Object.keys(body).find((name) => !KNOWN[protocol].has(name));
  if (unknown !== undefined) return { message: `${unknown}: unknown parameter`, param: unknown };
  return CHECKS[protocol](body);
}

const CHECKS: Readonly<Record<Protocol, (body: JsonObject) => ErrorWords | undefined>> = {
  chat: chatProblem,
  messages: messagesProblem,
  responses: responsesProblem,
};

/**
 * Checks that each tool call is answered by the tool messages directly after it, and that these answer nothing else.
 */
function chatProblem(body: JsonObject): ErrorWords | undefined {
  if (body.stream !== true && body.stream_options != null) return refuse("stream_options", "only with stream: true");
  let open = new Set<unknown>();
  for (const [i, message] of list(body.messages).entries()) {
    const path = `messages[${i}]`;
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id)) return refuse(path, "a tool message must follow its tool call");
      continue;
    }
    if (open.size > 0) return refuse(path, `tool calls without an answer: ${[...open].join(", ")}`);
    if (message.role === "assistant") open = new Set(list(message.tool_calls).map((call) => call.id));
    if (message.role === "user" && message.content == null) return refuse(`${path}.content`, "content is required");
  }
  return open.size > 0 ? refuse("messages", `tool calls without an answer: ${[...open].join(", ")}`) : undefined;
}

/** Anything but white space; a byte order mark is not white space to the vendor, as it is to `trim`. */
const INK = /[\S\ufeff]/;

function messagesProblem(body: JsonObject): ErrorWords | undefined {
  const { type, budget_tokens: budget } = object(body.thinking);
  if (type === "enabled" && !(Number(budget) >= 1_024))
    return refuse("thinking.budget_tokens", "must be at least 1024");
  if (type === "enabled" && Number(budget) >= Number(body.max_tokens)) {
    return refuse("thinking.budget_tokens", "must be less than max_tokens");
  }
  let open: readonly unknown[] = [];
  for (const [i, message] of list(body.messages).entries()) {
    const path = `messages.${i}`;
    const problem = messageProblem(message, open, path);
    if (problem) return problem;
    open = idsOf(message, "tool_use", "id");
  }
  return placeProblem(list(body.messages));
}

/** Checks that system messages are where the vendor takes them, and that the conversation does not end in thinking. */
function placeProblem(messages: readonly JsonObject[]): ErrorWords | undefined {
  for (const [i, { role }] of messages.entries()) {
    if (role !== "system") continue;
    if (!takesSystemAfter(messages[i - 1]))
      return refuse(`messages.${i}`, "role 'system' must follow a 'user' message");
    if (messages[i + 1] && messages[i + 1]?.role !== "assistant")
      return refuse(`messages.${i}`, "role 'system' must precede an 'assistant' message or end the array");
  }
  const last = messages.at(-1);
  const type = list(last?.content).at(-1)?.type;
  if (last?.role !== "assistant" || (type !== "thinking" && type !== "redacted_thinking")) return undefined;
  return refuse(`messages.${messages.length - 1}`, `the final block in an assistant message cannot be ${type}`);
}

/** Checks that the message after tool uses is a user message and begins with one result for each of them. */
function messageProblem(message: JsonObject, open: readonly unknown[], path: string): ErrorWords | undefined {
  if (!["user", "assistant", "system"].includes(String(message.role))) return refuse(`${path}.role`, "unknown role");
  const blocks = list(message.content);
  const blank = blocks.findIndex((block) => block.type === "text" && !INK.test(String(block.text ?? "")));
  if (blank >= 0 || message.content === "") return refuse(`${path}.content`, "text must not be blank");
  const results = idsOf(message, "tool_result", "tool_use_id");
  const missing = open.find((id) => !results.includes(id));
  if (missing !== undefined) return refuse(path, `tool_use ids without a tool_result directly after: ${missing}`);
  const stray = results.find((id) => !open.includes(id));
  if (stray !== undefined) return refuse(path, `tool_result without a tool_use directly before: ${stray}`);
  const isFirst = blocks.slice(0, results.length).every((block) => block.type === "tool_result");
  return isFirst ? undefined : refuse(path, "tool_result blocks come before all others");
}

/** Checks that every call has an output and every output an earlier call; ids that are sent back keep their prefix. */
function responsesProblem(body: JsonObject): ErrorWords | undefined {
  const open = new Set<unknown>();
  const prefixes: Readonly<Record<string, string>> = { message: "msg", reasoning: "rs", function_call: "fc" };
  for (const [i, item] of list(body.input).entries()) {
    const type = String(item.type ?? "message");
    const prefix = prefixes[type];
    const isAlien = prefix !== undefined && typeof item.id === "string" && !item.id.startsWith(prefix);
    if (isAlien) return refuse(`input[${i}].id`, `expected an id that begins with '${prefix}'`);
    if (type === "function_call" || type === "custom_tool_call") open.add(item.call_id);
    if (type === "function_call_output" || type === "custom_tool_call_output") {
      if (!open.delete(item.call_id)) return refuse(`input[${i}].call_id`, `no tool call found for ${item.call_id}`);
    }
  }
  return open.size > 0 ? refuse("input", `no tool output found for ${[...open].join(", ")}`) : undefined;
}

/** Whether a message is of the user, or ends in work of the vendor's own tools. */
function takesSystemAfter(message: JsonObject | undefined): boolean {
  const type = String(list(message?.content).at(-1)?.type);
  return message?.role === "user" || type === "server_tool_use" || type.endsWith("_tool_result");
}

function idsOf(message: JsonObject, type: string, member: string): readonly unknown[] {
  return list(message.content)
    .filter((block) => block.type === type)
    .map((block) => block[member]);
}

function refuse(param: string, reason: string): ErrorWords {
  return { message: `${param}: ${reason}`, param };
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
