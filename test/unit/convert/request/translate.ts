/**
 * Shared by the request tests: a route, a deterministic context, and the translation of a client's body to an
 * upstream's.
 */
import { createHash } from "node:crypto";
import * as chat from "../../../../src/convert/chat/request.ts";
import type { ConvertContext, Permitted, RouteFacts } from "../../../../src/convert/exchange.ts";
import type { HubFacts, HubRequest, TranslatedRequest } from "../../../../src/convert/hub.ts";
import * as messages from "../../../../src/convert/messages/request.ts";
import * as responses from "../../../../src/convert/responses/request.ts";
import { type Capabilities, defaultCapabilities } from "../../../../src/values/catalog.ts";
import { isRefusal, type Refusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";

export type Body = Readonly<Record<string, unknown>>;

interface RequestTranslator {
  decodeRequest(json: Body, facts: HubFacts): HubRequest | Refusal;
  encodeRequest(
    hub: HubRequest,
    route: RouteFacts,
    permitted: Permitted,
    context: ConvertContext,
  ): TranslatedRequest | Refusal;
}

export const TRANSLATORS: Readonly<Record<Protocol, RequestTranslator>> = { chat, messages, responses };

/**
 * Seals without a secret, so that a test can read the content. `open` opens only what was sealed for the same binding.
 */
const sealed: ConvertContext["seal"] = (content, binding) =>
  `gw1.${Buffer.from(`${binding}\n${Buffer.from(content)}`).toString("base64url")}`;

export const CONTEXT: ConvertContext = {
  nowS: 1_795_000_000,
  randomId: (length) => "0".repeat(length),
  seal: sealed,
  sealAlike: sealed,
  digest: (text) => createHash("sha256").update(text).digest("base64url").slice(0, 32),
  open: (envelope, binding) => {
    const [bound, ...content] = Buffer.from(envelope.slice(4), "base64url").toString().split("\n");
    return bound === binding ? Buffer.from(content.join("\n")) : undefined;
  },
};

export const UPSTREAM_MODEL = "upstream-model";

/** A route with the default capabilities, except for the given ones. */
export function routeTo(protocol: Protocol, capabilities: Partial<Capabilities> = {}): RouteFacts {
  return {
    upstream: "east",
    protocol,
    upstreamModel: UPSTREAM_MODEL,
    capabilities: { ...defaultCapabilities(protocol), ...capabilities },
    maxOutputTokens: 32_000,
    defaultOutputTokens: 8192,
  };
}

export const PERMITTED: Permitted = { outputLimit: undefined, strict: false };

/** Translates a client's body to the upstream's request. */
export function translate(
  from: Protocol,
  body: Body,
  route: RouteFacts,
  permitted: Permitted = PERMITTED,
): TranslatedRequest | Refusal {
  const facts = { model: typeof body.model === "string" ? body.model : "", stream: body.stream === true };
  const hub = TRANSLATORS[from].decodeRequest(body, facts);
  return isRefusal(hub) ? hub : TRANSLATORS[route.protocol].encodeRequest(hub, route, permitted, CONTEXT);
}

/** The upstream's body as JSON; a refusal fails the test. */
export function upstreamBody(
  from: Protocol,
  body: Body,
  route: RouteFacts,
  permitted: Permitted = PERMITTED,
): Record<string, unknown> {
  const encoded = translate(from, body, route, permitted);
  if (isRefusal(encoded)) throw new Error(`refused: ${JSON.stringify(encoded.facts)}`);
  return JSON.parse(new TextDecoder().decode(encoded.body));
}
