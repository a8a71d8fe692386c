/**
 * What one attempt carries through dispatch: the conversion for its route, and what the inspection of the reply has
 * completed so far. For dispatch, it is an opaque token.
 */
import type { RequestHeaders } from "../accept/headers.ts";
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
import { translationHeader } from "../convert/rules/losses.ts";
import { LEFT_OUT, withoutReasoning } from "../convert/without-reasoning.ts";
import type { AttemptRequest, Inspector } from "../dispatch/ask.ts";
import { FORWARDED_VALUE_LENGTH_MAX } from "../dispatch/upstream/request-head.ts";
import type { Group, Model, Route } from "../values/catalog.ts";
import { isRefusal, type Refusal } from "../values/errors.ts";
import { tierOf } from "../values/members/tier.ts";
import type { Protocol } from "../values/protocol.ts";
import { actionsFor, type HeaderEdits, headerEdits, type RuleAction } from "../values/rules.ts";

export class AttemptConversion {
  readonly exchange: Exchange;
  /** Frames completed during inspection. */
  readonly first: ClientFrames[] = [];
  whole: WholeReply | undefined = undefined;
  #converter: StreamConverter | undefined = undefined;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
  }

  /** The stream's conversion, created with the first byte of a streamed reply. */
  get converter(): StreamConverter {
    this.#converter ??= this.exchange.stream();
    return this.#converter;
  }
}

const NO_EDITS: readonly HeaderEdits[] = [];

/** The encoder of a request for dispatch: the conversion for a route, then the operator's rules on its result. */
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
    // Most routes have no rules.
    if (actions.length === 0)
      return { body: exchange.request.body, headers: NO_EDITS, tier: exchange.request.tier, token };
    const body = ruled(exchange.request.body, request, route, actions);
    return { body, headers: headerEdits(actions), tier: tierSent(exchange.request, body), token };
  };
}

/** The same for a request whose reasoning an upstream has refused: without the reasoning, and the answer says so. */
export function encoderWithoutReasoning(
  open: OpenExchange,
  request: ClientRequest,
  permit: { readonly model: Model; readonly group: Group },
  permitted: Permitted,
  context: ConvertContext,
): (route: Route) => AttemptRequest<AttemptConversion> | Refusal | undefined {
  return (route) => {
    const less = permitted.strict ? undefined : withoutReasoning(request);
    if (!less) return undefined;
    const openLess: OpenExchange = (...asked) => {
      const exchange = open(...asked);
      return isRefusal(exchange) ? exchange : leaving(exchange, LEFT_OUT);
    };
    return encoderFor(openLess, less, permit, permitted, context)(route);
  };
}

/** An exchange whose answer lists one more member that was left out. */
function leaving(exchange: Exchange, name: string): Exchange {
  const dropped = [name, ...exchange.request.dropped.filter((one) => one !== name)];
  return {
    request: { ...exchange.request, dropped },
    translation: translationHeader(dropped, exchange.request.ignored),
    whole: (body) => exchange.whole(body),
    stream: () => exchange.stream(),
  };
}

/** The body after the operator's rules. If conversion did not change the body, its existing scan is reused. */
function ruled(body: Uint8Array, request: ClientRequest, route: Route, actions: readonly RuleAction[]): Uint8Array {
  const { protocol, capabilities } = route;
  const scan = body === request.body ? request.scan : undefined;
  return rewriteBody(body, { protocol, systemRole: capabilities.systemRole }, actions, scan);
}

/** The tier that the final body asks for: a rule may have removed the member. */
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
    stateful: route.stateful,
  };
}

/**
 * Inspects a reply before it counts as an answer. A stream is accepted with its first event, so that a stream that
 * begins with an error can still be retried elsewhere.
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

/*
 * The client's headers that are passed to an upstream of the same protocol. Dispatch decides which names are allowed.
 */

/**
 * The form of a beta's name. Any name of this form passes, known or not: clients use new ones before we know them, and
 * an upstream ignores those that it does not know. Names of another form are dropped silently.
 */
const BETA_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * The request headers that go upstream: for messages, the version, unchanged, and the betas. An upstream of another
 * protocol gets neither, and a messages upstream on a translated route gets dispatch's own version.
 */
export function forwardedHeaders(protocol: Protocol, headers: RequestHeaders): [string, string][] {
  if (protocol !== "messages") return [];
  const forwarded: [string, string][] = [];
  const version = headers.get("anthropic-version");
  if (version !== undefined) forwarded.push(["anthropic-version", version]);
  const betas = betaList(headers.all("anthropic-beta"));
  if (betas !== "") forwarded.push(["anthropic-beta", betas]);
  return forwarded;
}

/** Merges the header's lines, each a list of its own, into one list, in order and without repetitions. */
function betaList(lines: readonly string[]): string {
  const names = new Set(
    lines
      .flatMap((line) => line.split(","))
      .map((name) => name.trim())
      .filter((name) => BETA_NAME.test(name)),
  );
  let list = "";
  for (const name of names) {
    const longer = list === "" ? name : `${list},${name}`;
    // Further names are dropped, so that a long list is shortened instead of lost.
    if (longer.length > FORWARDED_VALUE_LENGTH_MAX) break;
    list = longer;
  }
  return list;
}
