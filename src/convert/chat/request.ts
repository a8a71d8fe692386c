/** Requests of the chat protocol: decoding is re-exported, encoding is here (directions MC and RC). */
import type { Refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { isObject } from "../../values/json-object.ts";
import type { ConvertContext, Permitted, RouteFacts } from "../exchange.ts";
import type { HostedTool, HubRequest, OutputFormat, ToolRef, TranslatedRequest } from "../hub.ts";
import { hasUserMarks, promptCacheMembers } from "../rules/cache-marks.ts";
import { planFormat, schemaMembers } from "../rules/format.ts";
import { CallIds, shortUserId } from "../rules/ids.ts";
import { Losses } from "../rules/losses.ts";
import { ignoreNative } from "../rules/options.ts";
import { refuse, refusing } from "../rules/read.ts";
import { encoded, planReply } from "../rules/reply-plan.ts";
import { openaiSampling, planStop } from "../rules/sampling.ts";
import { joinTexts } from "../rules/system.ts";
import { effortIsLost } from "../rules/thinking.ts";
import { NameBook } from "../rules/tool-names.ts";
import { offerTools } from "../rules/tool-offer.ts";
import { carriesMarks, writeTurns } from "./request/turns.ts";
import { encodeTool, encodeToolChoice } from "./shape.ts";
import { chatThinking } from "./thinking.ts";

export { decodeRequest } from "./request/decode.ts";

/** The request for a chat upstream, or the refusal if this route cannot carry it. Equal requests give equal bytes. */
export function encodeRequest(
  hub: HubRequest,
  route: RouteFacts,
  permitted: Permitted,
  context: ConvertContext,
): TranslatedRequest | Refusal {
  return refusing(() => encode(hub, route, permitted, context));
}

function encode(hub: HubRequest, route: RouteFacts, permitted: Permitted, context: ConvertContext): TranslatedRequest {
  const { capabilities } = route;
  const losses = new Losses(permitted.strict);
  losses.leaveOut(hub.rest, "chat");
  const names = new NameBook("chat");
  const carriesHosted = (tool: HostedTool) =>
    hub.client !== "messages" &&
    capabilities.openaiNative &&
    tool.hosted.startsWith("web_search") &&
    !permitted.unpricedTools?.includes(tool.hosted);
  const offer = offerTools(hub, { capabilities, carriesHosted, allowedNatively: false }, names, losses);
  const messages = writeTurns({ hub, route, context, names, ids: new CallIds(), losses });
  if (hub.client === "responses" && !carriesMarks(hub, route) && hasUserMarks(hub)) {
    losses.ignore("input.content.prompt_cache_breakpoint");
  }
  settleEnd(messages, hub, route);
  const carries = (one: OutputFormat) => one.type === "json_object" || capabilities.structuredOutputs;
  const format = planFormat(hub, carries, losses);
  const stop = planStop(hub, route);
  if (effortIsLost(hub.reasoning, capabilities)) losses.drop(hub.reasoning.param);
  const isCustom = (tool: ToolRef) => capabilities.customTools && names.defined(tool)?.kind === "custom";
  const hasTools = offer.tools.length > 0;
  const body = {
    model: route.upstreamModel,
    messages: [...systemMessage(hub, format.line, capabilities.systemRole), ...messages],
    [capabilities.maxTokensField]: outputLimit(hub, route, permitted),
    tools: hasTools ? offer.tools.map((tool) => encodeTool(tool, capabilities.customTools)) : undefined,
    tool_choice: hasTools ? encodeToolChoice(offer.choice, (tool) => names.nameOf(tool), isCustom) : undefined,
    parallel_tool_calls: hasTools && hub.parallelTools === false ? false : undefined,
    web_search_options: offer.hosted[0] && webSearchOptions(offer.hosted[0], losses),
    stop: stop.sent,
    ...openaiSampling(hub, route, losses),
    ...chatThinking(hub.reasoning, capabilities, permitted.thinkingMost),
    response_format: format.native && responseFormat(format.native),
    logprobs: hub.logprobs && true,
    top_logprobs: hub.logprobs?.top,
    ...nativeMembers(hub, route, context, losses),
    stream: hub.stream || undefined,
    stream_options: hub.stream && capabilities.streamUsage ? { include_usage: true } : undefined,
  };
  return encoded(body, losses, planReply(hub, route, names.map, stop.emulated));
}

/** All leading system text as one message, because some servers take only one (docs/translation-rules.md rule 9). */
function systemMessage(hub: HubRequest, line: string | undefined, role: string): readonly JsonObject[] {
  const content = [joinTexts(hub.system), line].filter((one) => one).join("\n\n");
  return content === "" ? [] : [{ role, content }];
}

/**
 * A messages client means an assistant message at the end as a prefill, which chat servers do not support (rule 17).
 */
function settleEnd(messages: readonly JsonObject[], hub: HubRequest, route: RouteFacts): void {
  const last = messages.at(-1);
  if (last === undefined) {
    const param = hub.client === "responses" ? "input" : "messages";
    refuse("missing_field", param, "There must be at least one user message.");
  }
  if (last.role === "assistant" && hub.client === "messages" && !route.capabilities.prefill) {
    refuse("untranslatable", "messages", "The conversation must not end with an assistant message for this model.");
  }
}

function outputLimit(hub: HubRequest, route: RouteFacts, permitted: Permitted): number | undefined {
  const wanted = permitted.outputLimit ?? hub.outputLimit?.tokens;
  return wanted === undefined ? undefined : Math.min(wanted, route.maxOutputTokens);
}

function responseFormat(format: OutputFormat): JsonObject {
  return format.type === "json_object"
    ? { type: "json_object" }
    : { type: "json_schema", json_schema: schemaMembers(format) };
}

/**
 * A web search in chat's form: the location is nested one level deeper than in responses, and limits on what may be
 * searched are left out.
 */
function webSearchOptions(tool: HostedTool, losses: Losses): JsonObject {
  for (const name of ["filters", "external_web_access", "search_content_types"]) {
    if (tool.native[name] !== undefined && tool.native[name] !== null) losses.drop(`tools.${name}`, tool.param);
  }
  const { search_context_size, user_location: place } = tool.native;
  if (!isObject(place) || isObject(place.approximate)) return { search_context_size, user_location: place };
  const { type: _, ...approximate } = place;
  return { search_context_size, user_location: { type: "approximate", approximate } };
}

/** Members that only servers of the protocol's own vendor support (rule 28). */
function nativeMembers(hub: HubRequest, route: RouteFacts, context: ConvertContext, losses: Losses): JsonObject {
  const tier = hub.serviceTier === "standard_only" ? "default" : hub.serviceTier;
  if (route.capabilities.openaiNative) {
    return {
      safety_identifier: hub.userId && shortUserId(hub.userId),
      service_tier: tier,
      verbosity: hub.verbosity,
      metadata: hub.metadata,
      moderation: hub.moderation,
      ...promptCacheMembers(hub, route, context),
    };
  }
  ignoreNative(hub, losses);
  if (hub.verbosity !== undefined) losses.drop(hub.client === "responses" ? "text.verbosity" : "verbosity");
  if (tier !== undefined && tier !== "auto" && tier !== "default") losses.drop("service_tier");
  if (hub.moderation !== undefined) losses.drop("moderation");
  return {};
}
