/**
 * Reasoning that a client carries for us from one turn to the next (2.0.5): the upstream's own blocks, sealed. What
 * comes back broken, from elsewhere or from another model is dropped without a word, before anything is sent.
 */
import type { Protocol } from "../../values/protocol.ts";
import type { ConvertContext } from "../exchange.ts";

const VERSION = 1;
const PREFIX = "gw1.";

/** Largest envelope that is opened, in characters; a longer one is dropped like a foreign one. */
export const ENVELOPE_CHARS_MAX = 4 * 1024 * 1024;

/** Whose reasoning is in an envelope. */
export interface ReasoningOrigin {
  readonly protocol: Protocol;
  readonly upstreamModel: string;
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
  const content = JSON.stringify({ v: VERSION, p: origin.protocol, m: origin.upstreamModel, d: native });
  return context.seal(new TextEncoder().encode(content), binding(origin.protocol));
}

/**
 * Opens an envelope for a route.
 * @returns the blocks as they were sealed; undefined when the text is not an envelope, was changed, or holds another
 *   protocol's or another model's reasoning. Chat reasoning is plain text, which any chat model may read.
 */
export function openReasoning(
  opaque: string | undefined,
  origin: ReasoningOrigin,
  context: ConvertContext,
): readonly unknown[] | undefined {
  if (opaque === undefined || !opaque.startsWith(PREFIX) || opaque.length > ENVELOPE_CHARS_MAX) return undefined;
  const content = context.open(opaque, binding(origin.protocol));
  if (content === undefined) return undefined;
  const parsed = parse(content);
  if (parsed?.v !== VERSION || parsed.p !== origin.protocol || !Array.isArray(parsed.d)) return undefined;
  if (origin.protocol !== "chat" && parsed.m !== origin.upstreamModel) return undefined;
  return parsed.d;
}

function parse(content: Uint8Array): { v?: unknown; p?: unknown; m?: unknown; d?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(content));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
