/** Requests of the responses protocol: decoding is re-exported, encoding is here (directions CR and MR). */
import type { Refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { isObject } from "../../values/json-object.ts";
import { PROTOCOLS } from "../../values/protocol.ts";
import type { ConvertContext, Permitted, RouteFacts } from "../exchange.ts";
import type { HostedTool, HubRequest, OutputFormat, ToolRef, TranslatedRequest } from "../hub.ts";
import { promptCacheMembers } from "../rules/cache-marks.ts";
import { planFormat, schemaMembers } from "../rules/format.ts";
import { CallIds, shortUserId } from "../rules/ids.ts";
import { Losses } from "../rules/losses.ts";
import { refuse, refusing } from "../rules/read.ts";
import { encoded, planReply } from "../rules/reply-plan.ts";
import { openaiSampling, planStop } from "../rules/sampling.ts";
import { joinTexts } from "../rules/system.ts";
import { effortIsLost, openaiEffort } from "../rules/thinking.ts";
import { NameBook } from "../rules/tool-names.ts";
import { offerTools } from "../rules/tool-offer.ts";
import { writeItems } from "./request/items.ts";
import { encodeTool, encodeToolChoice } from "./shape.ts";

export { decodeRequest } from "./request/decode.ts";

/**
 * The request for a responses upstream, or the refusal if this route cannot carry it. Equal requests give equal bytes.
 */
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
  losses.leaveOut(hub.rest, "responses");
  const names = new NameBook("responses");
  const carriesHosted = (tool: HostedTool) => tool.demanded;
  const offer = offerTools(hub, { capabilities, carriesHosted, allowedNatively: true }, names, losses);
  const items = writeItems({ hub, route, context, names, ids: new CallIds(), losses });
  settleEnd(items, hub, route);
  const carries = (one: OutputFormat) => one.type === "json_object" || capabilities.structuredOutputs;
  const format = planFormat(hub, carries, losses);
  const stop = planStop(hub, route);
  const isCustom = (tool: ToolRef) => capabilities.customTools && names.defined(tool)?.kind === "custom";
  const tools = [
    ...offer.tools.map((tool) => encodeTool(tool, capabilities.customTools)),
    ...offer.hosted.map(webSearchTool),
  ];
  const hasTools = tools.length > 0;
  const body = {
    model: route.upstreamModel,
    instructions: [joinTexts(hub.system), format.line].filter((one) => one).join("\n\n") || undefined,
    input: items,
    tools: hasTools ? tools : undefined,
    tool_choice: hasTools ? encodeToolChoice(offer.choice, (tool) => names.nameOf(tool), isCustom) : undefined,
    parallel_tool_calls: hasTools ? hub.parallelTools : undefined,
    max_output_tokens: outputLimit(hub, route, permitted),
    ...openaiSampling(hub, route, losses),
    reasoning: reasoning(hub, route, losses),
    text: textOptions(hub, format.native),
    include: include(hub, route),
    top_logprobs: hub.logprobs?.top,
    safety_identifier: hub.userId && shortUserId(hub.userId),
    service_tier: serviceTier(hub),
    ...promptCacheMembers(hub, route, context),
    ...nativeMembers(hub, route, losses),
    store: false, // Nothing is stored upstream (docs/translation-rules.md rule 5).
    stream: hub.stream || undefined,
  };
  return encoded(body, losses, planReply(hub, route, names.map, stop.emulated));
}

/**
 * A messages client means an assistant message at the end as a prefill, which this protocol does not support (rule 17).
 */
function settleEnd(items: readonly JsonObject[], hub: HubRequest, route: RouteFacts): void {
  const last = items.at(-1);
  if (last === undefined) {
    const param = hub.client === "responses" ? "input" : "messages";
    refuse("missing_field", param, "There must be at least one user message.");
  }
  if (last.role === "assistant" && hub.client === "messages" && !route.capabilities.prefill) {
    refuse("untranslatable", "messages", "The conversation must not end with an assistant message for this model.");
  }
}

/** Rule 22: within the route's limit, and never below the protocol's minimum. */
function outputLimit(hub: HubRequest, route: RouteFacts, permitted: Permitted): number | undefined {
  const wanted = permitted.outputLimit ?? hub.outputLimit?.tokens;
  if (wanted === undefined) return undefined;
  return Math.max(Math.min(wanted, route.maxOutputTokens), PROTOCOLS.responses.limitFloor);
}

/** Whether the upstream's model reasons, by its capabilities. */
function reasons(route: RouteFacts): boolean {
  return route.capabilities.efforts.length > 0;
}

/** Effort and summary; a model that does not reason gets neither (rule 27). */
function reasoning(hub: HubRequest, route: RouteFacts, losses: Losses): JsonObject | undefined {
  const requested = hub.reasoning;
  if (effortIsLost(requested, route.capabilities)) losses.drop(requested.param);
  if (!reasons(route)) return undefined;
  const effort = openaiEffort(requested, route.capabilities);
  const summary = requested.off ? undefined : summaryOf(hub);
  return effort === undefined && summary === undefined ? undefined : { effort, summary };
}

/** A messages client that uses thinking gets summaries, unless it asked not to. */
function summaryOf(hub: HubRequest): string | undefined {
  const { reasoning: requested } = hub;
  if (hub.client !== "messages") return requested.summary;
  if (requested.display === "omitted") return undefined;
  return requested.thinking !== undefined || requested.effort !== undefined ? "auto" : undefined;
}

function include(hub: HubRequest, route: RouteFacts): readonly string[] | undefined {
  const wanted: string[] = [];
  if (hub.client !== "chat" && hub.reply.encryptedReasoning && reasons(route)) {
    wanted.push("reasoning.encrypted_content");
  }
  if (hub.logprobs) wanted.push("message.output_text.logprobs");
  return wanted.length > 0 ? wanted : undefined;
}

function textOptions(hub: HubRequest, format: OutputFormat | undefined): JsonObject | undefined {
  if (format === undefined && hub.verbosity === undefined) return undefined;
  return { format: format && flatFormat(format), verbosity: hub.verbosity };
}

function flatFormat(format: OutputFormat): JsonObject {
  return format.type === "json_object" ? { type: "json_object" } : { type: "json_schema", ...schemaMembers(format) };
}

/** Chat's `web_search_options` as a tool; the location is one level higher (rule 29). */
function webSearchTool(tool: HostedTool): JsonObject {
  const { search_context_size, user_location: place } = tool.native;
  const approximate = isObject(place) && isObject(place.approximate) ? place.approximate : place;
  const location = isObject(approximate) ? { ...approximate, type: "approximate" } : undefined;
  return { type: "web_search", search_context_size, user_location: location };
}

/** The messages service tier as this protocol's value. */
function serviceTier(hub: HubRequest): string | undefined {
  return hub.serviceTier === "standard_only" ? "default" : hub.serviceTier;
}

/** Members that only servers of the protocol's own vendor support (rule 28). */
function nativeMembers(hub: HubRequest, route: RouteFacts, losses: Losses): JsonObject {
  if (route.capabilities.openaiNative) return { metadata: hub.metadata, moderation: hub.moderation };
  if (hub.metadata !== undefined) losses.ignore("metadata");
  if (hub.moderation !== undefined) losses.drop("moderation");
  return {};
}
