/**
 * Requests of the messages protocol: decoding is re-exported, encoding is here (directions CM and RM;
 * docs/translation-rules.md).
 */
import type { Refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { ConvertContext, Permitted, RouteFacts } from "../exchange.ts";
import type { HubRequest, OutputFormat, TranslatedRequest } from "../hub.ts";
import { ignoreReasoning } from "../rules/envelope.ts";
import { type FormatPlan, planFormat, schemaParam } from "../rules/format.ts";
import { CallIds } from "../rules/ids.ts";
import { Losses } from "../rules/losses.ts";
import { ignoreNative } from "../rules/options.ts";
import { refuse, refusing } from "../rules/read.ts";
import { encoded, planReply } from "../rules/reply-plan.ts";
import { messagesSampling, planStop } from "../rules/sampling.ts";
import { withoutBlankEnd } from "../rules/system.ts";
import { planThinking } from "../rules/thinking.ts";
import { NameBook } from "../rules/tool-names.ts";
import { isForced, offerTools, type ToolOffer } from "../rules/tool-offer.ts";
import { settleBreakpoints } from "./request/breakpoints.ts";
import {
  type ContentBlock,
  endsInBareCalls,
  type Message,
  removeLooseThinking,
  textBlocks,
  writeTurns,
} from "./request/turns.ts";
import { closedSchema, hasMap, losesInClosing } from "./schemas.ts";
import { cacheControl, encodeTool, encodeToolChoice } from "./shape.ts";

export { decodeRequest } from "./request/decode.ts";

/** The member that holds the conversation, by the client's protocol. */
const CONVERSATION: Readonly<Record<Protocol, string>> = { chat: "messages", messages: "messages", responses: "input" };

/**
 * The request for a messages upstream, or the refusal if this route cannot carry it. Equal requests give equal bytes.
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
  const losses = new Losses(permitted.strict);
  losses.leaveOut(hub.rest, "messages");
  refuseForeign(hub);
  const names = new NameBook("messages");
  const { capabilities } = route;
  const offer = offerTools(hub, { capabilities, carriesHosted: () => false, allowedNatively: false }, names, losses);
  const messages = writeTurns({ hub, route, context, names, ids: new CallIds(), losses });
  if (removeLooseThinking(messages)) ignoreReasoning({ hub, losses });
  settleEnd(messages, hub, route);
  const format = planFormat(hub, (one) => fitsDialect(one) && capabilities.structuredOutputs, losses);
  const system = textBlocks(hub.system);
  if (format.line !== undefined) system.push({ type: "text", text: format.line });
  const tools: ContentBlock[] = offer.tools.map(encodeTool);
  settleBreakpoints({ tools, system, messages }, hub, route);
  if (lacksStrict(offer, tools)) losses.drop(STRICT[hub.client]);
  const obstacles = { forcedTool: isForced(offer.choice), brokenLoop: endsInBareCalls(messages) };
  const thinking = planThinking(hub, route, permitted, obstacles, losses);
  const stop = planStop(hub, route);
  if (hub.verbosity !== undefined) losses.drop(hub.client === "responses" ? "text.verbosity" : "verbosity");
  const schema = formatSchema(format, hub, losses);
  ignoreNative(hub, losses, { userId: true });
  const body = {
    model: route.upstreamModel,
    max_tokens: thinking.maxTokens,
    system: system.length > 0 ? system : undefined,
    messages,
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: toolChoice(hub, offer, names),
    cache_control: cacheControl(hub.cache),
    stop_sequences: stop.sent,
    ...messagesSampling(hub, route, thinking.active, losses),
    thinking: thinking.thinking,
    output_config: outputConfig(thinking.effort, schema),
    metadata: hub.userId === undefined ? undefined : { user_id: hub.userId },
    service_tier: serviceTier(hub, losses),
    stream: hub.stream || undefined,
  };
  return encoded(body, losses, planReply(hub, route, names.map, stop.emulated));
}

/** Refuses what this protocol has no member for and the answer would lack (rule 30). */
function refuseForeign(hub: HubRequest): void {
  if (hub.logprobs) refuse("unsupported_parameter", hub.logprobs.param, "This model gives no token probabilities.");
  if (hub.moderation !== undefined) {
    refuse("unsupported_parameter", "moderation", "This model's server does not moderate.");
  }
}

/** An assistant message at the end is a prefill, which most models refuse (rule 17). */
function settleEnd(messages: readonly Message[], hub: HubRequest, route: RouteFacts): void {
  const param = CONVERSATION[hub.client];
  const last = messages.at(-1);
  if (last === undefined) refuse("missing_field", param, "There must be at least one user message.");
  if (last.role !== "assistant") return;
  if (!route.capabilities.prefill) {
    refuse("untranslatable", param, "The conversation must not end with an assistant message for this model.");
  }
  const block = last.content.at(-1);
  if (block?.type === "text" && typeof block.text === "string") block.text = withoutBlankEnd(block.text);
}

/** The member in which each client sets that a tool's schema is binding. */
const STRICT: Readonly<Record<Protocol, string>> = {
  chat: "tools.function.strict",
  messages: "tools.strict",
  responses: "tools.strict",
};

/** Whether a schema that should be binding is outside the closed dialect, in which alone it can be (rule 33). */
function lacksStrict({ tools }: ToolOffer, written: readonly ContentBlock[]): boolean {
  return tools.some(
    ({ definition }, index) =>
      definition.type === "function" && definition.strict === true && written[index]?.strict !== true,
  );
}

/** Whether the closed dialect has a form for this format; it has none for maps. */
function fitsDialect(format: OutputFormat): boolean {
  return format.type === "json_schema" && !hasMap(format.schema);
}

/** The format's schema in the closed dialect. It is always binding, and has a description but no name (rule 26). */
function formatSchema({ native }: FormatPlan, hub: HubRequest, losses: Losses): JsonObject | undefined {
  const member = schemaParam(hub.client);
  if (hub.format?.type === "json_schema" && hub.format.name !== undefined) losses.ignore(`${member}.name`);
  if (native?.type !== "json_schema") return undefined;
  const { description, strict, schema } = native;
  if (losesInClosing(schema)) losses.drop(`${member}.schema`);
  if (strict === false) losses.drop(`${member}.strict`);
  return closedSchema(description === undefined ? schema : { ...schema, description: described(description, schema) });
}

/** The description of a format, followed by that of its schema if it differs. */
function described(description: string, { description: own }: JsonObject): string {
  return typeof own === "string" && own !== "" && own !== description ? `${description}\n\n${own}` : description;
}

function toolChoice(hub: HubRequest, offer: ToolOffer, names: NameBook): JsonObject | undefined {
  if (offer.tools.length === 0) return undefined;
  return encodeToolChoice(offer.choice, hub.parallelTools, (tool) => names.nameOf(tool));
}

function outputConfig(effort: string | undefined, schema: JsonObject | undefined): JsonObject | undefined {
  if (effort === undefined && schema === undefined) return undefined;
  return { effort, format: schema && { type: "json_schema", schema } };
}

/** OpenAI's service tier as this protocol's value (rule 28). */
function serviceTier(hub: HubRequest, losses: Losses): string | undefined {
  const tier = hub.serviceTier;
  if (tier === undefined || tier === "auto") return undefined;
  if (tier === "default" || tier === "standard_only") return "standard_only";
  losses.drop("service_tier");
  return undefined;
}
