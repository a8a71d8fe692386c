/** Makes the `ReplyPlan`: what the translation of the reply needs to know of the request. */

import { tierOf } from "../../values/members/tier.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { RouteFacts } from "../exchange.ts";
import type { HubRequest, ReplyPlan, ReplyReasoning, RestoreMap, TranslatedRequest } from "../hub.ts";
import { originOf } from "./envelope.ts";
import type { Losses } from "./losses.ts";

/**
 * The plan of a reply.
 * @param emulateStop the stop strings that the upstream did not get (docs/translation-rules.md rule 25).
 */
export function planReply(
  hub: HubRequest,
  route: RouteFacts,
  tools: RestoreMap,
  emulateStop: readonly string[],
): ReplyPlan {
  return {
    client: hub.client,
    upstream: route.protocol,
    model: hub.model,
    upstreamModel: route.upstreamModel,
    answersAs: route.answersAs,
    account: originOf(route).account,
    stream: hub.stream,
    tools,
    emulateStop,
    includeUsage: hub.reply.includeUsage,
    deprecatedFunctions: hub.reply.deprecatedFunctions,
    reasoning: planReasoning(hub, route),
    referable: hub.reply.referable,
    echo: hub.reply.echo,
  };
}

function planReasoning(hub: HubRequest, route: RouteFacts): ReplyReasoning {
  return {
    visibility: visibilityOf(hub, route),
    // Rule 39: messages and responses upstreams show summaries. Chat's text counts as one only if the client asked for
    // a summary.
    summary: route.protocol !== "chat" || hub.reasoning.summary !== undefined,
    envelope: envelopeWanted(hub),
    inText: route.capabilities.thinkingInText,
  };
}

function visibilityOf(hub: HubRequest, route: RouteFacts): ReplyReasoning["visibility"] {
  if (hub.client !== "messages") return "full";
  if (hub.reasoning.off) return "none";
  if (hub.reasoning.display !== "omitted") return "full";
  const mustComeBack = route.protocol === "responses" || route.capabilities.reasoningContent === "roundtrip";
  return mustComeBack ? "opaque" : "none";
}

function envelopeWanted(hub: HubRequest): boolean {
  const wanted: Readonly<Record<Protocol, boolean>> = {
    chat: false,
    messages: true,
    responses: hub.reply.encryptedReasoning,
  };
  return wanted[hub.client];
}

/** Combines body, losses and plan. Undefined members do not appear in the body. */
export function encoded(body: Readonly<Record<string, unknown>>, losses: Losses, plan: ReplyPlan): TranslatedRequest {
  const { names: dropped, unlisted, ignored } = losses;
  return { body: Buffer.from(JSON.stringify(body)), dropped, unlisted, ignored, tier: tierOf(body)?.name, plan };
}
