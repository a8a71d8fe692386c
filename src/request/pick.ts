/**
 * The third step of a request: it enters flight, and is converted for one route after another until an upstream
 * answers.
 */

import type { ReadBody } from "../accept/envelope.ts";
import type { Permit } from "../admit/permit.ts";
import { conversationHash, SESSION_HEADERS } from "../convert/conversation.ts";
import type { ClientRequest } from "../convert/exchange.ts";
import type { Answered, AttemptRequest } from "../dispatch/ask.ts";
import type { Route } from "../values/catalog.ts";
import { isRefusal, type Refusal } from "../values/errors.ts";
import type { WellFormedKey } from "../values/key.ts";
import { Secret } from "../values/secret.ts";
import { contextOf } from "./context.ts";
import {
  type AttemptConversion,
  encoderFor,
  encoderWithoutReasoning,
  forwardedHeaders,
  inspector,
} from "./conversion.ts";
import { refusedBesideStored, routesFor } from "./references.ts";
import type { PipelineParts, Run } from "./run.ts";

/** Counts the request as in flight. @returns why it may not go upstream. */
export function enterFlight(run: Run, key: WellFormedKey, permit: Permit, parts: PipelineParts): Refusal | undefined {
  const leave = parts.overload.enter(key);
  if (isRefusal(leave)) return { ...leave, facts: { ...leave.facts, group: permit.group.name } };
  run.leave = leave;
  return undefined;
}

/** Makes the body for a route, in its upstream's protocol, or returns why that route cannot carry the request. */
interface Convert {
  readonly first: (route: Route) => AttemptRequest<AttemptConversion> | Refusal;
  /** The same without the reasoning that the upstream has refused; undefined if the request has none. */
  readonly withoutReasoning: (route: Route) => AttemptRequest<AttemptConversion> | Refusal | undefined;
}

/** How the request is converted, for any route. */
export function conversionOf(run: Run, permit: Permit, read: ReadBody, parts: PipelineParts): Convert {
  const { request, protocol, endpoint } = run;
  const { model, stream } = read.envelope;
  const { outputLimit, thinkingMost, openEnded } = permit;
  const { inputEstimate, unpricedTools } = permit.terms;
  const strict = request.headers.get("x-tollgate-strict") === "1";
  const permitted = { outputLimit, thinkingMost, openEnded, inputEstimate, unpricedTools, strict };
  const { json, scan, body, surplus, lostReferences, stored } = read;
  const asked: ClientRequest = { protocol, model, stream, json, scan, body, surplus, lostReferences, stored };
  const details = [endpoint.open, asked, permit, permitted, contextOf(parts, permit)] as const;
  const encode = encoderFor(...details);
  const made = <E extends AttemptRequest<AttemptConversion> | Refusal | undefined>(
    encodeFor: (route: Route) => E,
    route: Route,
  ) => {
    const startedMs = parts.clock.monotonicMs();
    const encoded = encodeFor(route);
    run.record.converted(startedMs);
    return encoded === undefined || isRefusal(encoded) ? encoded : traced(encoded, route, run, parts);
  };
  return {
    first: (route) => made(encode, route),
    withoutReasoning: (route) => made(encoderWithoutReasoning(...details), route),
  };
}

/** Tries routes until an upstream answers; undefined if the client disconnected in the meantime. */
export async function pickUpstream(
  run: Run,
  permit: Permit,
  read: ReadBody,
  convert: Convert,
  parts: PipelineParts,
): Promise<Answered<AttemptConversion> | Refusal | undefined> {
  const { request, protocol, endpoint } = run;
  const { model, stream } = read.envelope;
  const conversation = conversationOf(run, permit, read);
  const result = await parts.dispatcher.run<AttemptConversion>({
    protocol,
    routes: routesFor(permit.model.routes, read),
    stream,
    pathSuffix: endpoint.pathSuffix,
    headers: forwardedHeaders(protocol, request.headers),
    deadlineMs: parts.clock.monotonicMs() + run.totalMs,
    signal: request.signal,
    owner: { account: permit.tag, key: permit.keyId },
    conversation,
    prefers: read.stored?.ranAt,
    encodeFor: convert.first,
    withoutReasoning: convert.withoutReasoning,
    inspector,
  });
  run.attempts = result.attempts;
  run.record.dispatched(result.attempts);
  if (result.answered) {
    const { dropped, unlisted } = result.token.exchange.request;
    run.record.translated(result.route.protocol, dropped, unlisted);
    return result;
  }
  if (result.clientGone) return undefined;
  const refused = refusedBesideStored(endpoint.refused(result.refusal, result.attempts), result.attempts, read);
  return { ...refused, facts: { model, group: permit.group.name, ...refused.facts } };
}

/** The conversation matters only for a choice between upstreams; endpoints other than the model path have none. */
function conversationOf({ protocol, request, endpoint }: Run, { tag, model }: Permit, { json }: ReadBody) {
  if (model.routes.length < 2 || endpoint.pathSuffix !== undefined) return undefined;
  const header = SESSION_HEADERS.find((name) => request.headers.get(name) !== undefined);
  const session = header === undefined ? undefined : request.headers.get(header);
  return conversationHash(protocol, json, session, [tag, model.name]);
}

/** Adds the attempt to the trace. Its upstream gets the `traceparent` if it is configured to. */
function traced(
  encoded: AttemptRequest<AttemptConversion>,
  route: Route,
  run: Run,
  parts: PipelineParts,
): AttemptRequest<AttemptConversion> {
  const traceparent = run.record.attempting(route);
  if (traceparent === undefined || !parts.settings().traces?.propagate.has(route.upstream)) return encoded;
  const edit = { remove: [], add: [{ name: "traceparent", value: new Secret(traceparent) }] };
  return { ...encoded, headers: [edit, ...(encoded.headers ?? [])] };
}
