/**
 * Reasoning that a client carries for us from one turn to the next (docs/translation-rules.md rule 38): the upstream's
 * own blocks, sealed. What comes back broken, from elsewhere or from another model is dropped before anything is sent: no
 * loss of what the client asked for, so that it is named as ignored at most.
 */
import { isObject, type JsonObject, objectOf } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { SEALED_PREFIX } from "../../values/sealed.ts";
import type { ConvertContext, RouteFacts } from "../exchange.ts";
import type { AssistantTurn, HubRequest, ReasoningPart } from "../hub.ts";
import type { Losses } from "./losses.ts";

const VERSION = 1;

/** Largest envelope that is opened, in characters; a longer one is dropped like a foreign one. */
const ENVELOPE_CHARS_MAX = 4 * 1024 * 1024;

/** Who writes a conversation for a route. */
interface ReasoningReader {
  readonly hub: HubRequest;
  readonly route: RouteFacts;
  readonly context: ConvertContext;
  readonly losses: Losses;
}

/** Whose reasoning is in an envelope. */
interface ReasoningOrigin {
  readonly protocol: Protocol;
  readonly upstreamModel: string;
  /** The upstream's name where its thinking is bound to its account; undefined where any account may read it. */
  readonly account: string | undefined;
}

/**
 * The origin of a route's reasoning. Routes to one model of one protocol read each other's, also on different
 * upstreams: so a conversation keeps its reasoning when it fails over to another account. Two vendors that give their
 * models one name, or accounts that cannot read each other's thinking, need `account_bound_thinking`: then only the
 * upstream that thought gets it back.
 */
export function originOf({ upstream, protocol, upstreamModel, capabilities }: RouteFacts): ReasoningOrigin {
  return { protocol, upstreamModel, account: capabilities.accountBoundThinking ? upstream : undefined };
}

/** What an envelope is bound to beside its content: the protocol whose blocks it holds. */
function binding(protocol: Protocol): string {
  return `reasoning:${protocol}`;
}

/**
 * Seals blocks or items of the upstream for the client to bring back.
 * @param native the blocks exactly as the upstream's protocol writes them, in order.
 */
export function sealReasoning(native: readonly unknown[], origin: ReasoningOrigin, context: ConvertContext): string {
  const { protocol, upstreamModel, account } = origin;
  const content = JSON.stringify({ v: VERSION, p: protocol, m: upstreamModel, a: account, d: native });
  return context.seal(new TextEncoder().encode(content), binding(protocol));
}

/**
 * Opens an envelope for a route.
 * @returns the blocks as they were sealed; undefined when the text is not an envelope, was changed, or holds another
 *   protocol's, model's or account's reasoning. The words of chat reasoning are plain text, which any chat model may read.
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
 * The blocks or items that a turn's reasoning parts hold for a route: of all of them, or of none, which is then ignored.
 * @param types those that the route's protocol has for reasoning; others in an envelope stay away.
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

/** What another chat model may read: the words, and nothing that was signed. */
function plainText(native: unknown): readonly string[] {
  const text = typeof native === "string" ? native : objectOf(native)?.text;
  return typeof text === "string" && text !== "" ? [text] : [];
}

/** Where each client keeps the reasoning of earlier turns. */
const REASONING: Readonly<Record<Protocol, string>> = {
  chat: "messages.reasoning_content",
  messages: "messages.content.thinking",
  responses: "input.reasoning",
};

/** Names reasoning that the upstream does not get back, since it is another's or does not want it. */
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
