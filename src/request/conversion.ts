/**
 * What one attempt carries through dispatch: the conversion for its route, and what inspecting the reply has completed
 * so far. Dispatch holds it as a token and understands none of it.
 */
import { countedFault } from "../convert/counted-fault.ts";
import {
  type ClientFrames,
  type ClientRequest,
  type ConvertContext,
  type EncodedRequest,
  type Exchange,
  isFault,
  type OpenExchange,
  type Permitted,
  type RouteFacts,
  type StreamConverter,
  type WholeReply,
} from "../convert/exchange.ts";
import { rewriteBody } from "../convert/rewrite/rewrite.ts";
import type { AttemptRequest, Inspector } from "../dispatch/ask.ts";
import type { Group, Model, Route } from "../values/catalog.ts";
import { isRefusal, type Refusal } from "../values/errors.ts";
import { tierOf } from "../values/members/tier.ts";
import { actionsFor, headerEdits, type RuleAction } from "../values/rules.ts";

export class AttemptConversion {
  readonly exchange: Exchange;
  /** Frames completed during inspection. */
  readonly first: ClientFrames[] = [];
  whole: WholeReply | undefined = undefined;
  #converter: StreamConverter | undefined = undefined;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  /** The stream's conversion; made with the first byte of a streamed reply. */
  get converter(): StreamConverter {
    this.#converter ??= this.exchange.stream();
    return this.#converter;
  }
}

/** Gives dispatch the encoder of a request: the conversion for a route, then the operator's rules on what it gave. */
export function encoderFor(
  open: OpenExchange,
  request: ClientRequest,
  { model, group }: { readonly model: Model; readonly group: Group },
  permitted: Permitted,
  context: ConvertContext,
): (route: Route) => AttemptRequest<AttemptConversion> | Refusal {
  return (route) => {
    const exchange = open(request, routeFacts(route, model), permitted, context);
    if (isRefusal(exchange)) return exchange;
    const token = new AttemptConversion(exchange);
    const actions = actionsFor([group, model, route], route.protocol);
    const body = ruled(exchange.request.body, request, route, actions);
    return { body, headers: headerEdits(actions), tier: tierSent(exchange.request, body), token };
  };
}

/** The body as the operator's rules want it; one that conversion did not touch has been scanned before. */
function ruled(body: Uint8Array, request: ClientRequest, route: Route, actions: readonly RuleAction[]): Uint8Array {
  const { protocol, capabilities } = route;
  const scan = body === request.body ? request.scan : undefined;
  return rewriteBody(body, { protocol, systemRole: capabilities.systemRole }, actions, scan);
}

/** The tier that the body asks for in the end: a rule may have taken its member out. */
function tierSent({ body: converted, tier }: EncodedRequest, body: Uint8Array): string | undefined {
  if (tier === undefined || body === converted) return tier;
  return tierOf(JSON.parse(Buffer.from(body).toString()))?.name;
}

function routeFacts(route: Route, model: Model): RouteFacts {
  return {
    upstream: route.upstream,
    protocol: route.protocol,
    upstreamModel: route.upstreamModel,
    capabilities: route.capabilities,
    maxOutputTokens: model.maxOutputTokens,
    defaultOutputTokens: model.defaultOutputTokens,
    passedMembers: route.passedMembers,
    answersAs: route.answersAs,
  };
}

/**
 * Looks at a reply before it counts as an answer: a stream is accepted with its first event, so that one that begins
 * with an error can still be tried elsewhere.
 */
export const inspector: Inspector<AttemptConversion> = {
  chunk(attempt, bytes) {
    attempt.first.push(...attempt.converter.push(bytes));
    return attempt.converter.opened || attempt.converter.ended ? "accept" : (countedFault(attempt.converter) ?? "more");
  },
  end(attempt) {
    attempt.first.push(...attempt.converter.end());
    if (attempt.converter.opened || attempt.converter.ended) return "accept";
    return countedFault(attempt.converter) ?? { cause: "upstream_invalid", code: undefined, reason: "an empty stream" };
  },
  whole(attempt, body) {
    const reply = attempt.exchange.whole(body);
    if (isFault(reply)) return reply;
    attempt.whole = reply;
    return "accept";
  },
};
