/** Decodes OpenAI Responses requests to the hub form (docs/translation-rules.md rules 9 to 38). */
import type { Refusal } from "../../../values/errors.ts";
import { isGiven, type JsonObject } from "../../../values/json-object.ts";
import type { HubFacts, HubRequest, OutputFormat, RequestedReasoning, RestField } from "../../hub.ts";
import {
  plainReasoning,
  requestedEffort,
  restOf,
  schemaFormat,
  secondUser,
  sharedOpenaiMembers,
} from "../../rules/options.ts";
import { provePairs } from "../../rules/pairing.ts";
import {
  optionalCount,
  optionalFlag,
  optionalList,
  optionalRecord,
  optionalText,
  optionalWord,
  refusing,
} from "../../rules/read.ts";
import { isBlank, withoutAttribution } from "../../rules/system.ts";
import { unreadOf } from "../../rules/unread.ts";
import { mayBeReferredTo } from "../references/sealing.ts";
import { decodeToolChoice, decodeTools } from "../shape.ts";
import { ResponsesConversation } from "./input.ts";
import { RESPONSES_READS } from "./members.ts";

/**
 * A responses request as a hub request, or the refusal of it.
 * @param json the parsed body; its top-level members have passed accept's checks.
 */
export function decodeRequest(json: JsonObject, facts: HubFacts): HubRequest | Refusal {
  return refusing(() => decode(json, facts));
}

function decode(json: JsonObject, facts: HubFacts): HubRequest {
  const conversation = new ResponsesConversation(json.input);
  provePairs(conversation.turns, false);
  const instructions = withoutAttribution(optionalText(json.instructions, "instructions") ?? "");
  const tools = [...decodeTools(json.tools, "tools"), ...conversation.tools];
  const options = optionalRecord(json.text, "text");
  const include = optionalList(json.include, "include") ?? [];
  return {
    client: "responses",
    model: facts.model,
    stream: facts.stream,
    system: [...(isBlank(instructions) ? [] : [{ type: "text" as const, text: instructions }]), ...conversation.system],
    turns: conversation.turns,
    tools,
    toolChoice: decodeToolChoice(json.tool_choice, tools),
    outputLimit: decodeLimit(json.max_output_tokens),
    stop: [],
    format: decodeFormat(conversation.format ?? options?.format),
    verbosity: optionalWord(options?.verbosity, "text.verbosity", ["low", "medium", "high"]),
    reasoning: decodeReasoning(json.reasoning, conversation.effort),
    logprobs: decodeLogprobs(json, include),
    ...sharedOpenaiMembers(json),
    reply: {
      includeUsage: true,
      encryptedReasoning: include.includes("reasoning.encrypted_content"),
      deprecatedFunctions: false,
      referable: mayBeReferredTo(json),
      echo: echoOf(json),
    },
    rest: decodeRest(json, include, conversation.hostedCalls),
  };
}

function decodeLimit(value: unknown): HubRequest["outputLimit"] {
  const tokens = optionalCount(value, "max_output_tokens", 1);
  return tokens === undefined ? undefined : { param: "max_output_tokens", tokens };
}

function decodeFormat(value: unknown): OutputFormat | undefined {
  const format = optionalRecord(value, "text.format");
  const type = optionalWord(format?.type, "text.format.type", ["text", "json_object", "json_schema"]);
  if (format === undefined || type === undefined || type === "text") return undefined;
  return type === "json_object" ? { type } : schemaFormat(format, "text.format");
}

/** `summary`, or its earlier name `generate_summary`. */
function decodeReasoning(value: unknown, lastEffort: unknown): RequestedReasoning {
  const reasoning = optionalRecord(value, "reasoning");
  const summary =
    optionalText(reasoning?.summary, "reasoning.summary") ??
    optionalText(reasoning?.generate_summary, "reasoning.generate_summary");
  return plainReasoning(
    requestedEffort(lastEffort ?? reasoning?.effort, "reasoning.effort"),
    "reasoning.effort",
    summary,
  );
}

function decodeLogprobs(json: JsonObject, include: readonly unknown[]): HubRequest["logprobs"] {
  const top = optionalCount(json.top_logprobs, "top_logprobs", 0);
  if (top !== undefined && top > 0) return { top, param: "top_logprobs" };
  return include.includes("message.output_text.logprobs") ? { top, param: "include" } : undefined;
}

/**
 * The values of `include` that are supported here; the others ask for work of hosted tools, which no other server does.
 */
const READ_INCLUDES: ReadonlySet<unknown> = new Set(["reasoning.encrypted_content", "message.output_text.logprobs"]);

/** Members that no other protocol has: those that are refused, and those that are left out (rules 3, 30 and 31). */
function decodeRest(json: JsonObject, include: readonly unknown[], hostedCalls: boolean): readonly RestField[] {
  const rest = restOf(json, {
    previous_response_id: "required",
    conversation: "required",
    prompt: "required",
    background_options: "required",
    inference_geo: "required",
    context_management: "meaning",
  });
  rest.push(...secondUser(json));
  if (optionalFlag(json.background, "background") === true) {
    rest.push({ param: "background", value: true, weight: "required" });
  }
  if (json.truncation === "auto") rest.push({ param: "truncation", value: "auto", weight: "meaning" });
  const mode = optionalRecord(json.reasoning, "reasoning")?.mode;
  if (isGiven(mode) && mode !== "standard") rest.push({ param: "reasoning.mode", value: mode, weight: "meaning" });
  if (include.some((one) => !READ_INCLUDES.has(one))) rest.push({ param: "include", value: include, weight: "hint" });
  if (hostedCalls) rest.push({ param: "input.hosted_call", value: true, weight: "meaning" });
  return [...rest, ...unreadOf(json, RESPONSES_READS, ["input"])];
}

/** The members of the request that every response object repeats, with the protocol's own defaults (rule 45). */
function echoOf(json: JsonObject): JsonObject {
  const text = optionalRecord(json.text, "text");
  return {
    background: false,
    instructions: json.instructions ?? null,
    max_output_tokens: json.max_output_tokens ?? null,
    metadata: json.metadata ?? {},
    parallel_tool_calls: json.parallel_tool_calls ?? true,
    previous_response_id: null,
    reasoning: json.reasoning ?? { effort: null, summary: null },
    temperature: json.temperature ?? 1,
    text: isGiven(text?.format) ? text : { ...text, format: { type: "text" } },
    tool_choice: json.tool_choice ?? "auto",
    tools: json.tools ?? [],
    top_p: json.top_p ?? 1,
    truncation: json.truncation ?? "disabled",
  };
}
