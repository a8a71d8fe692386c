/** Decodes Chat Completions requests to the hub form (docs/translation-rules.md rules 9 to 38). */
import type { Refusal } from "../../../values/errors.ts";
import { isGiven, isObject, type JsonObject } from "../../../values/json-object.ts";
import type { HubFacts, HubRequest, RestField } from "../../hub.ts";
import { cacheMark } from "../../rules/cache-marks.ts";
import { restOf, schemaFormat, secondUser, sharedOpenaiMembers } from "../../rules/options.ts";
import {
  listBesideText,
  optionalCount,
  optionalFlag,
  optionalList,
  optionalRecord,
  optionalWord,
  record,
  refuse,
  refusing,
  text,
} from "../../rules/read.ts";
import { unreadOf } from "../../rules/unread.ts";
import { decodeToolChoice, decodeTools, hasFunctionsOnly } from "../shape.ts";
import { decodeMessages } from "./conversation.ts";
import { CHAT_READS } from "./members.ts";
import { decodeReasoning } from "./reasoning.ts";

/**
 * A chat request as a hub request, or the refusal of it.
 * @param json the parsed body; its top-level members have passed accept's checks.
 */
export function decodeRequest(json: JsonObject, facts: HubFacts): HubRequest | Refusal {
  return refusing(() => decode(json, facts));
}

function decode(json: JsonObject, facts: HubFacts): HubRequest {
  const conversation = decodeMessages(json.messages);
  const streamOptions = optionalRecord(json.stream_options, "stream_options");
  if (streamOptions && !facts.stream) {
    refuse("unsupported_parameter", "stream_options", "stream_options is only allowed with stream: true.");
  }
  const reasoning = decodeReasoning(json);
  const webSearch = optionalRecord(json.web_search_options, "web_search_options");
  return {
    client: "chat",
    model: facts.model,
    stream: facts.stream,
    system: conversation.system,
    turns: conversation.turns,
    tools: [
      ...decodeTools(json),
      ...(webSearch
        ? [
            {
              type: "hosted" as const,
              hosted: "web_search",
              native: webSearch,
              param: "web_search_options",
              demanded: true,
            },
          ]
        : []),
    ],
    toolChoice: decodeToolChoice(json),
    outputLimit: decodeLimit(json),
    stop: decodeStop(json.stop),
    format: decodeFormat(json.response_format),
    verbosity: optionalWord(json.verbosity, "verbosity", ["low", "medium", "high"]),
    reasoning: reasoning.requested,
    logprobs: decodeLogprobs(json),
    ...sharedOpenaiMembers(json),
    cache: cacheMark(json.cache_control, "cache_control"),
    reply: {
      includeUsage: streamOptions?.include_usage === true,
      encryptedReasoning: false,
      referable: false,
      deprecatedFunctions: hasFunctionsOnly(json),
      echo: {},
    },
    rest: [...decodeRest(json), ...reasoning.unheeded.map((param) => leftOut(param, json))],
  };
}

/** If both members are given, the newer one counts (rule 22). */
function decodeLimit(json: JsonObject): HubRequest["outputLimit"] {
  for (const param of ["max_completion_tokens", "max_tokens"]) {
    const tokens = optionalCount(json[param], param, 1);
    if (tokens !== undefined) return { param, tokens };
  }
  return undefined;
}

function decodeStop(value: unknown): readonly string[] {
  if (typeof value === "string") return value === "" ? [] : [value];
  return (listBesideText(value, "stop") ?? [])
    .map((one, index) => text(one, `stop[${index}]`))
    .filter((one) => one !== "");
}

function decodeFormat(value: unknown): HubRequest["format"] {
  const format = optionalRecord(value, "response_format");
  const type = optionalWord(format?.type, "response_format.type", ["text", "json_object", "json_schema"]);
  if (format === undefined || type === undefined || type === "text") return undefined;
  if (type === "json_object") return { type };
  const param = "response_format.json_schema";
  return schemaFormat(record(format.json_schema, param), param);
}

function decodeLogprobs(json: JsonObject): HubRequest["logprobs"] {
  const top = optionalCount(json.top_logprobs, "top_logprobs", 0);
  if (optionalFlag(json.logprobs, "logprobs") === true) return { top, param: "logprobs" };
  return top === undefined || top === 0 ? undefined : { top, param: "top_logprobs" };
}

/** A member that contradicts one that takes precedence, or has an unknown value. */
function leftOut(param: string, json: JsonObject): RestField {
  return { param, value: json[param.split(".")[0] ?? param], weight: "meaning" };
}

/**
 * Members that no other protocol has: those that are refused, and those that are left out and named (rules 30 and 31).
 */
function decodeRest(json: JsonObject): readonly RestField[] {
  const rest = restOf(json, { seed: "meaning", prediction: "meaning", audio: "required", inference_geo: "required" });
  rest.push(...secondUser(json));
  const n = optionalCount(json.n, "n", 1);
  if (n !== undefined && n > 1) rest.push({ param: "n", value: n, weight: "required" });
  const modalities = optionalList(json.modalities, "modalities") ?? [];
  if (modalities.some((one) => one !== "text")) {
    rest.push({ param: "modalities", value: modalities, weight: "required" });
  }
  for (const param of ["frequency_penalty", "presence_penalty"]) {
    if (isGiven(json[param]) && json[param] !== 0) rest.push({ param, value: json[param], weight: "meaning" });
  }
  if (isObject(json.logit_bias) && Object.keys(json.logit_bias).length > 0) {
    rest.push({ param: "logit_bias", value: json.logit_bias, weight: "meaning" });
  }
  return [...rest, ...unreadOf(json, CHAT_READS, ["messages"])];
}
