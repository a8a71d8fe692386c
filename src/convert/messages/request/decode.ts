/** Decodes Anthropic Messages requests to the hub form (docs/translation-rules.md rules 9 to 38). */
import { isDeepStrictEqual } from "node:util";
import { EFFORTS } from "../../../values/catalog.ts";
import type { Refusal } from "../../../values/errors.ts";
import { isGiven, type JsonObject } from "../../../values/json-object.ts";
import { SURPLUS_MAX } from "../../../values/members.ts";
import type { HubFacts, HubRequest, RequestedReasoning, RestField, TextPart } from "../../hub.ts";
import { restOf } from "../../rules/options.ts";
import {
  listBesideText,
  optionalCount,
  optionalList,
  optionalNumber,
  optionalRecord,
  optionalText,
  optionalWord,
  record,
  refuse,
  refusing,
  text,
} from "../../rules/read.ts";
import { isBlank, withoutAttribution } from "../../rules/system.ts";
import { unreadOf } from "../../rules/unread.ts";
import { decodeToolChoice } from "../shape.ts";
import { MessagesConversation, plainText, textBlock } from "./conversation.ts";
import { MESSAGES_READS } from "./members.ts";
import { OfferedTools } from "./tool-changes.ts";

/**
 * A messages request as a hub request, or the refusal of it.
 * @param json the parsed body; its top-level members have passed accept's checks.
 */
export function decodeRequest(json: JsonObject, facts: HubFacts): HubRequest | Refusal {
  return refusing(() => decode(json, facts));
}

function decode(json: JsonObject, facts: HubFacts): HubRequest {
  const tools = new OfferedTools(json);
  const conversation = new MessagesConversation(json, tools);
  const choice = decodeToolChoice(json.tool_choice);
  return {
    client: "messages",
    model: facts.model,
    stream: facts.stream,
    system: [...decodeSystem(json.system), ...conversation.leading.filter((part) => !isBlank(part.text))],
    turns: conversation.turns,
    tools: tools.offered,
    toolChoice: choice.choice,
    parallelTools: choice.parallel,
    outputLimit: decodeLimit(json.max_tokens),
    sampling: {
      temperature: optionalNumber(json.temperature, "temperature", 0, 1),
      topP: optionalNumber(json.top_p, "top_p", 0, 1),
      topK: optionalCount(json.top_k, "top_k", 0),
    },
    stop: (optionalList(json.stop_sequences, "stop_sequences") ?? [])
      .map((one, index) => text(one, `stop_sequences.${index}`))
      .filter((one) => one !== ""),
    format: decodeFormat(json),
    verbosity: undefined,
    reasoning: decodeReasoning(json, conversation.effort),
    logprobs: undefined,
    userId: optionalText(optionalRecord(json.metadata, "metadata")?.user_id, "metadata.user_id"),
    serviceTier: optionalText(json.service_tier, "service_tier"),
    promptCache: {},
    metadata: undefined,
    moderation: undefined,
    reply: { includeUsage: true, encryptedReasoning: true, deprecatedFunctions: false, referable: false, echo: {} },
    rest: decodeRest(json, conversation.serverTools),
  };
}

function decodeSystem(value: unknown): readonly TextPart[] {
  const parts =
    typeof value === "string" ? [plainText(value)] : (listBesideText(value, "system") ?? []).map(systemBlock);
  return parts
    .map((part) => ({ ...part, text: withoutAttribution(part.text) })) // Its nonce defeats prompt caches (rule 11).
    .filter((part) => !isBlank(part.text));
}

function systemBlock(raw: unknown, index: number): TextPart {
  const block = record(raw, `system.${index}`);
  if (block.type !== "text") refuse("wrong_type", `system.${index}.type`, "System blocks must be text.");
  return textBlock(block, `system.${index}`);
}

/** The required output limit (rule 22). 0 only warms a cache, which exists on messages servers alone. */
function decodeLimit(value: unknown): HubRequest["outputLimit"] {
  if (!isGiven(value)) return refuse("missing_field", "max_tokens", "max_tokens: Field required.");
  const tokens = optionalCount(value, "max_tokens", 0) ?? 0;
  if (tokens === 0) {
    refuse("unsupported_parameter", "max_tokens", "max_tokens: 0 warms a prompt cache that this model does not have.");
  }
  return { param: "max_tokens", tokens };
}

function decodeFormat(json: JsonObject): HubRequest["format"] {
  const config = optionalRecord(json.output_config, "output_config");
  const newer = optionalRecord(config?.format, "output_config.format");
  const param = newer ? "output_config.format" : "output_format";
  const older = optionalRecord(json.output_format, "output_format");
  const format = newer ?? older;
  if (format === undefined) return undefined;
  if (older && !isDeepStrictEqual(older, format)) {
    refuse("unsupported_parameter", "output_format", "output_format says another thing than output_config.format.");
  }
  optionalWord(format.type, `${param}.type`, ["json_schema"]);
  return {
    type: "json_schema",
    name: undefined,
    description: undefined,
    strict: true,
    schema: record(format.schema, `${param}.schema`),
  };
}

const THINKING = ["enabled", "disabled", "adaptive", "between_tools"] as const;

function decodeReasoning(json: JsonObject, lastEffort: unknown): RequestedReasoning {
  const config = optionalRecord(json.output_config, "output_config");
  const thinking = optionalRecord(json.thinking, "thinking");
  const type = optionalWord(thinking?.type, "thinking.type", THINKING);
  const off = type === "disabled" || type === "between_tools";
  const effort = optionalWord(lastEffort ?? config?.effort, "output_config.effort", EFFORTS);
  const budgetTokens = optionalCount(thinking?.budget_tokens, "thinking.budget_tokens", 0);
  return {
    effort: effort === "none" ? undefined : effort,
    off: off || effort === "none",
    budgetTokens: type === "enabled" ? budgetTokens : undefined,
    thinking: type === "enabled" || type === "adaptive" ? type : undefined,
    display: optionalText(thinking?.display, "thinking.display"),
    summary: undefined,
    param: type === undefined ? "output_config.effort" : "thinking",
  };
}

/**
 * Members of the client's metadata in addition to the user id, up to the number of names that is reported for any body.
 */
function otherMetadata(json: JsonObject): readonly string[] {
  const metadata = optionalRecord(json.metadata, "metadata");
  if (metadata === undefined) return [];
  const names = Object.keys(metadata).filter((name) => name !== "user_id" && isGiven(metadata[name]));
  return names.slice(0, SURPLUS_MAX);
}

/** Members that no other protocol has. */
const OWN: Readonly<Record<string, RestField["weight"]>> = {
  inference_geo: "required",
  container: "required",
  mcp_servers: "required",
  thread: "required",
  // The answer would be a summary and nothing else.
  compaction: "required",
  context_management: "meaning",
  fallbacks: "meaning",
  safeguards: "meaning",
};

/** Members that only this protocol has: those that are refused, and those that are left out (rules 3, 30 and 31). */
function decodeRest(json: JsonObject, serverTools: boolean): readonly RestField[] {
  const rest = restOf(json, OWN).filter((field) => !(Array.isArray(field.value) && field.value.length === 0));
  for (const name of otherMetadata(json)) rest.push({ param: `metadata.${name}`, value: true, weight: "hint" });
  if (json.speed === "fast") rest.push({ param: "speed", value: json.speed, weight: "meaning" });
  if (serverTools) rest.push({ param: "server_tool_use", value: true, weight: "meaning" });
  return [...rest, ...unreadOf(json, MESSAGES_READS, ["system", "messages"])];
}
