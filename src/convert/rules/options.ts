/** Members that chat and responses spell alike, and values that all three protocols share. */
import { EFFORTS, type Effort } from "../../values/catalog.ts";
import { isGiven, type JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { HubRequest, OutputFormat, RequestedReasoning, RestField } from "../hub.ts";
import type { Losses } from "./losses.ts";
import {
  optionalCount,
  optionalFlag,
  optionalNumber,
  optionalRecord,
  optionalText,
  optionalWord,
  record,
} from "./read.ts";

/** OpenAI's prompt cache members, by their JSON names. */
function promptCacheOf(json: JsonObject): JsonObject {
  const names = ["prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"];
  return Object.fromEntries(names.filter((name) => isGiven(json[name])).map((name) => [name, json[name]]));
}

/** The members that chat and responses share. */
export function sharedOpenaiMembers(
  json: JsonObject,
): Pick<
  HubRequest,
  "sampling" | "parallelTools" | "userId" | "serviceTier" | "promptCache" | "metadata" | "moderation"
> {
  return {
    sampling: {
      temperature: optionalNumber(json.temperature, "temperature", 0, 2),
      topP: optionalNumber(json.top_p, "top_p", 0, 1),
      topK: topKOf(json.top_k),
    },
    parallelTools: optionalFlag(json.parallel_tool_calls, "parallel_tool_calls"),
    userId: optionalText(json.safety_identifier, "safety_identifier") ?? optionalText(json.user, "user"),
    serviceTier: optionalText(json.service_tier, "service_tier"),
    promptCache: promptCacheOf(json),
    metadata: optionalRecord(json.metadata, "metadata"),
    moderation: json.moderation ?? undefined,
  };
}

/** `top_k`, as servers of open models take it: 0 and -1 mean all. */
function topKOf(value: unknown): number | undefined {
  const most = optionalNumber(value, "top_k", -1, Number.MAX_SAFE_INTEGER);
  if (most === undefined || most <= 0) return undefined;
  return optionalCount(value, "top_k", 1);
}

/** The member in which each client names its user. */
const USER_MEMBERS: Readonly<Record<Protocol, string>> = {
  chat: "safety_identifier",
  messages: "metadata.user_id",
  responses: "safety_identifier",
};

/**
 * Names the members that only their own vendor's servers use and whose absence a client cannot notice
 * (docs/translation-rules.md rules 3 and 28).
 * @param kept whether the user id is sent all the same.
 */
export function ignoreNative(hub: HubRequest, losses: Losses, kept: { readonly userId?: boolean } = {}): void {
  if (hub.userId !== undefined && !kept.userId) losses.ignore(USER_MEMBERS[hub.client]);
  if (hub.metadata !== undefined) losses.ignore("metadata");
  for (const name of Object.keys(hub.promptCache)) losses.ignore(name);
}

/** `user` next to a different `safety_identifier`: only one is sent, and the newer member counts (rule 28). */
export function secondUser({ user, safety_identifier: newer }: JsonObject): readonly RestField[] {
  return isGiven(user) && isGiven(newer) && user !== newer ? [{ param: "user", value: user, weight: "hint" }] : [];
}

/** An effort of chat or responses; `none` switches reasoning off. */
export function requestedEffort(
  value: unknown,
  param: string,
): { readonly effort: Exclude<Effort, "none"> | undefined; readonly off: boolean } {
  const word = optionalWord(value, param, EFFORTS);
  return word === "none" ? { effort: undefined, off: true } : { effort: word, off: false };
}

/** A request of which only effort and summary are known. */
export function plainReasoning(
  requested: Pick<RequestedReasoning, "effort" | "off">,
  param: string,
  summary: string | undefined = undefined,
): RequestedReasoning {
  return {
    effort: requested.effort,
    off: requested.off,
    budgetTokens: undefined,
    thinking: undefined,
    display: undefined,
    summary,
    param,
  };
}

/** A JSON Schema format whose members are in `value`, with the member names of both OpenAI protocols. */
export function schemaFormat(value: JsonObject, param: string): OutputFormat {
  return {
    type: "json_schema",
    name: optionalText(value.name, `${param}.name`),
    description: optionalText(value.description, `${param}.description`),
    strict: optionalFlag(value.strict, `${param}.strict`),
    schema: isGiven(value.schema) ? record(value.schema, `${param}.schema`) : { type: "object" },
  };
}

/**
 * Members of the body that only the client's protocol knows, each with its weight; absent and null ones are left out.
 */
export function restOf(json: JsonObject, weights: Readonly<Record<string, RestField["weight"]>>): RestField[] {
  const rest: RestField[] = [];
  // No list of them is made, since hardly any is there.
  for (const param in weights) {
    if (isGiven(json[param])) rest.push({ param, value: json[param], weight: weights[param] as RestField["weight"] });
  }
  return rest;
}
