/**
 * Reasoning that a client carries from one turn to the next (docs/translation-rules.md rule 38): the upstream's own
 * blocks, sealed in an envelope. Envelopes that are broken, foreign or of another model are dropped before anything is
 * sent. The client loses nothing that it asked for, so they are named as ignored at most.
 */
import { isObject, type JsonObject, objectOf } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { SEALED_PREFIX } from "../../values/sealed.ts";
import type { ConvertContext, RouteFacts } from "../exchange.ts";
import type { AssistantTurn, HubRequest, ReasoningPart } from "../hub.ts";
import type { Losses } from "./losses.ts";

const VERSION = 1;

/** The largest envelope that is opened, in characters; a longer one is dropped. */
const ENVELOPE_CHARS_MAX = 4 * 1024 * 1024;

/** What a request's encoder needs to read envelopes. */
interface ReasoningReader {
  readonly hub: HubRequest;
  readonly route: RouteFacts;
  readonly context: ConvertContext;
  readonly losses: Losses;
}

/** Where the reasoning in an envelope comes from. */
interface ReasoningOrigin {
  readonly protocol: Protocol;
  readonly upstreamModel: string;
  /** The upstream's name if its thinking is bound to its account; undefined if any account can read it. */
  readonly account: string | undefined;
}

/**
 * The origin of a route's reasoning. Routes to the same model name in the same protocol can read each other's
 * reasoning, also on different upstreams, so a conversation keeps its reasoning when it fails over to another account.
 * Set `account_bound_thinking` if two vendors use one name for their models, or if accounts cannot read each other's
 * thinking. Then only the upstream that produced the thinking gets it back.
 */
export function originOf({ upstream, protocol, upstreamModel, capabilities }: RouteFacts): ReasoningOrigin {
  return { protocol, upstreamModel, account: capabilities.accountBoundThinking ? upstream : undefined };
}

/** The context that an envelope is bound to: the protocol of its blocks. */
function binding(protocol: Protocol): string {
  return `reasoning:${protocol}`;
}

/**
 * Seals blocks or items of the upstream for the client to send back.
 * @param native the blocks exactly as the upstream's protocol writes them, in order.
 */
export function sealReasoning(native: readonly unknown[], origin: ReasoningOrigin, context: ConvertContext): string {
  const { protocol, upstreamModel, account } = origin;
  const content = JSON.stringify({ v: VERSION, p: protocol, m: upstreamModel, a: account, d: native });
  return context.seal(new TextEncoder().encode(content), binding(protocol));
}

/**
 * Opens an envelope for a route.
 * @returns the blocks as they were sealed; undefined if the text is not an envelope, was changed, or holds reasoning of
 * another protocol, model or account. The text of chat reasoning is plain, so any chat model gets it.
 */
export function openReasoning(
  opaque: string | undefined,
  origin: ReasoningOrigin,
  context: ConvertContext,
): readonly unknown[] | undefined {
  if (opaque === undefined || !opaque.startsWith(SEALED_PREFIX) || opaque.length > ENVELOPE_CHARS_MAX) return undefined;
  const content = context.open(opaque, binding(origin.protocol));
  if (content === undefined) return undefined;
  const parsed = parse(content);
  if (parsed?.v !== VERSION || parsed.p !== origin.protocol || !Array.isArray(parsed.d)) return undefined;
  const readable = parsed.m === origin.upstreamModel && parsed.a === origin.account;
  if (readable) return parsed.d;
  return origin.protocol === "chat" ? parsed.d.flatMap(plainText) : undefined;
}

/**
 * The blocks or items in a turn's reasoning parts, for a route: those of all parts. If one part cannot be opened,
 * undefined, and the reasoning of the turn is named as ignored.
 * @param types the types of reasoning in the route's protocol; others in an envelope are left out.
 */
export function restoredReasoning(
  { parts }: AssistantTurn,
  { hub, route, context, losses }: ReasoningReader,
  types: ReadonlySet<unknown>,
): ReadonlyMap<ReasoningPart, readonly JsonObject[]> | undefined {
  const restored = new Map<ReasoningPart, readonly JsonObject[]>();
  for (const part of parts) {
    if (part.type !== "reasoning") continue;
    const native = openReasoning(part.opaque, originOf(route), context);
    if (!native?.every(isObject)) {
      ignoreReasoning({ hub, losses });
      return undefined;
    }
    restored.set(
      part,
      native.filter(({ type }) => types.has(type)),
    );
  }
  return restored;
}

/** What another chat model may read: the text, and nothing signed. */
function plainText(native: unknown): readonly string[] {
  const text = typeof native === "string" ? native : objectOf(native)?.text;
  return typeof text === "string" && text !== "" ? [text] : [];
}

/** The member in which each client's protocol holds reasoning of earlier turns. */
const REASONING: Readonly<Record<Protocol, string>> = {
  chat: "messages.reasoning_content",
  messages: "messages.content.thinking",
  responses: "input.reasoning",
};

/**
 * Names reasoning that the upstream does not get back, because it comes from another one or because the upstream does
 * not take it.
 */
export function ignoreReasoning({ hub, losses }: { readonly hub: HubRequest; readonly losses: Losses }): void {
  losses.ignore(REASONING[hub.client]);
}

function parse(content: Uint8Array): { v?: unknown; p?: unknown; m?: unknown; a?: unknown; d?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(content));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
