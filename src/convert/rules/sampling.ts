/** Sampling members and stop strings for an upstream (docs/translation-rules.md rules 23, 24 and 25). */
import type { RouteFacts } from "../exchange.ts";
import type { HubRequest } from "../hub.ts";
import type { Losses } from "./losses.ts";
import { isBlank } from "./system.ts";

/** The most stop strings that chat takes. */
const CHAT_STOPS_MAX = 4;

/** The smallest `top_p` that messages takes together with thinking. */
const THINKING_TOP_P_MIN = 0.95;

interface SentSampling {
  readonly temperature?: number | undefined;
  readonly top_p?: number | undefined;
  readonly top_k?: number | undefined;
}

/** Sampling for a chat or responses upstream. Values that change nothing are left out without being named. */
export function openaiSampling(hub: HubRequest, route: RouteFacts, losses: Losses): SentSampling {
  const { temperature, topP, topK } = hub.sampling;
  if (topK !== undefined) losses.drop("top_k");
  if (route.capabilities.sampling === "full") return { temperature, top_p: topP };
  dropTemperature(hub, losses);
  dropTopP(hub, losses);
  return {};
}

/**
 * Sampling for a messages upstream.
 * @param thinking whether the request asks for thinking.
 */
export function messagesSampling(hub: HubRequest, route: RouteFacts, thinking: boolean, losses: Losses): SentSampling {
  const { temperature, topP, topK } = hub.sampling;
  if (route.capabilities.sampling === "none") {
    dropTemperature(hub, losses);
    dropTopP(hub, losses);
    if (topK !== undefined) losses.drop("top_k");
    return {};
  }
  if (thinking) {
    dropTemperature(hub, losses);
    if (topK !== undefined) losses.drop("top_k");
    if (topP === undefined || topP >= THINKING_TOP_P_MIN) return { top_p: topP };
    dropTopP(hub, losses);
    return {};
  }
  if (temperature === undefined) return { top_p: topP, top_k: topK };
  if (temperature > 1) losses.drop("temperature");
  // Newer models refuse both together. A temperature equal to the default can be left out.
  if (temperature >= 1 && topP !== undefined) return { top_p: topP, top_k: topK };
  dropTopP(hub, losses);
  return { temperature: Math.min(temperature, 1), top_k: topK };
}

function dropTemperature(hub: HubRequest, losses: Losses): void {
  const { temperature } = hub.sampling;
  if (temperature !== undefined && temperature !== 1) losses.drop("temperature");
}

function dropTopP(hub: HubRequest, losses: Losses): void {
  const { topP } = hub.sampling;
  if (topP !== undefined && topP < 1) losses.drop("top_p");
}

interface StopPlan {
  /** The stop strings that the upstream gets; undefined: none. */
  readonly sent: readonly string[] | undefined;
  /** The strings that the reply translation watches for (rule 25). */
  readonly emulated: readonly string[];
}

function split(sent: readonly string[], emulated: readonly string[]): StopPlan {
  return { sent: sent.length > 0 ? sent : undefined, emulated };
}

/**
 * Decides which stop strings the upstream gets and which the reply translation watches for. Messages refuses strings of
 * white space only, so those are watched for; the client sees no difference. If there are more than chat takes, all are
 * watched for (rule 24).
 */
export function planStop(hub: HubRequest, route: RouteFacts): StopPlan {
  // The responses protocol has no member for them, whatever the model's capabilities are on other routes.
  if (route.protocol === "responses" || route.capabilities.stop === "emulate") return split([], hub.stop);
  if (route.protocol === "messages") {
    return split(
      hub.stop.filter((stop) => !isBlank(stop)),
      hub.stop.filter(isBlank),
    );
  }
  return route.protocol === "chat" && hub.stop.length > CHAT_STOPS_MAX ? split([], hub.stop) : split(hub.stop, []);
}
