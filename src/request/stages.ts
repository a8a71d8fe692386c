/** What `serve.ts` does at each stage of a request: the glue between a stage's values and the next one's. */

import type { BodyGate } from "../accept/body.ts";
import type { ReadBody } from "../accept/envelope.ts";
import { idempotencyKeyOf } from "../accept/headers.ts";
import { admit } from "../admit/admit.ts";
import { readKeyView } from "../admit/key-view.ts";
import { limitHeaders } from "../admit/limit-headers.ts";
import type { Permit } from "../admit/permit.ts";
import { conversationHash, SESSION_HEADERS } from "../convert/conversation.ts";
import type { Answered, AttemptRequest } from "../dispatch/ask.ts";
import { costSoFar, settlementOf } from "../settle/charge.ts";
import { CheckpointPace } from "../settle/journal.ts";
import { voidOf } from "../settle/lines.ts";
import type { Ending } from "../settle/meter.ts";
import { BRAKE, CLIENT_GONE, COMPLETE } from "../settle/meter.ts";
import { addressBits } from "../store/limits/address-bits.ts";
import type { KeyView } from "../store/records.ts";
import type { Route } from "../values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import { type Idempotency, idempotentRequest } from "../values/idempotency.ts";
import type { WellFormedKey } from "../values/key.ts";
import type { Envelope } from "../values/members/envelope.ts";
import { nanoUsd } from "../values/money.ts";
import { PROTOCOLS } from "../values/protocol.ts";
import { Secret } from "../values/secret.ts";
import { contextOf } from "./context.ts";
import {
  type AttemptConversion,
  encoderFor,
  encoderWithoutReasoning,
  forwardedHeaders,
  inspector,
} from "./conversion.ts";
import { HoldExtension } from "./hold-extension.ts";
import { learn, leavingOf, paceOf, triesOf } from "./leaving.ts";
import { refusedBesideStored, routesFor, withReferences } from "./references.ts";
import { render } from "./refuse.ts";
import { relayStream } from "./relay.ts";
import type { PipelineParts, Run } from "./run.ts";
import type { SeenCounts } from "./silence.ts";

/** A hold outlives its request by this much, so that a slow settlement still finds it. */
const HOLD_GRACE_MS = 60_000;

/** What a client has sent, as far as it was read. */
interface RequestRead {
  /** The request, or the fault of its body, which the client learns only once its key is known to be good. */
  readonly read: ReadBody | Refusal;
  /**
   * What the key may see, where it has been read already: it may be remembered for this request, and for no other
   * (ARCHITECTURE.md promise 4).
   */
  readonly view: KeyView | undefined;
}

/**
 * Reads the body. A body larger than anybody may send unproven, or than it may become by what it refers to, is read only
 * after a look at its key. That costs such requests one more round trip, which reads one record; admission still decides.
 * @returns the refusal of the key, or of a request that there is no room for.
 */
export async function readRequest(run: Run, key: WellFormedKey, parts: PipelineParts): Promise<RequestRead | Refusal> {
  const { request, record, endpoint, protocol } = run;
  const shed = parts.overload.at("headers", key);
  if (shed) return shed;
  let view: KeyView | undefined;
  let refused: Refusal | undefined;
  const gate: BodyGate = async () => {
    const found = parts.journal.health().usable
      ? await readKeyView(key, addressOf(run), parts.admit)
      : refusal("journal_full");
    if (isRefusal(found)) refused = found;
    else view = found;
    return refused;
  };
  const body = await request.readBody(gate);
  record.bodyRead();
  if (refused) return refused;
  const shown = isRefusal(body) ? body : await endpoint.read(protocol, body);
  const unproven = view === undefined ? gate : undefined;
  const read = isRefusal(shown) ? shown : await withReferences(shown, key.tag, endpoint.read, parts, unproven);
  if (refused) return refused;
  const shedLater = isRefusal(read) ? undefined : parts.overload.at("body", key);
  return shedLater ?? { read, view };
}

/** The client's address, for keys that may be used from some only. */
function addressOf({ request }: Run): string {
  return addressBits(request.clientAddress ?? "");
}

/** Asks whether the request may run, and who pays. */
export async function admitRequest(
  run: Run,
  key: WellFormedKey,
  { read, view }: RequestRead,
  parts: PipelineParts,
): Promise<Permit | Refusal> {
  const idempotency = isRefusal(read) ? undefined : idempotencyOf(run, read, parts);
  const facts: Envelope | Refusal = isRefusal(read) ? read : isRefusal(idempotency) ? idempotency : read.envelope;
  if (!isRefusal(facts)) run.record.asked(facts.model);
  // What could not be recorded is not begun (docs/failure-model.md invariant 29).
  if (!parts.journal.health().usable) return refusal("journal_full");
  return admit(
    {
      requestId: run.request.id,
      protocol: run.protocol,
      key,
      address: addressOf(run),
      view,
      facts,
      holdTtlMs: longestTotalMs(parts, facts) + HOLD_GRACE_MS,
      idempotency: isRefusal(idempotency) ? undefined : idempotency,
    },
    parts.admit,
  );
}

/** Writes the hold to the journal, before anything else can happen to the request. */
export function openHold(run: Run, permit: Permit, parts: PipelineParts): void {
  run.permit = permit;
  run.record.admitted(permit);
  const { clientAddress: address, headers } = run.request;
  const { tag, keyId, storeTimeMs: atMs } = permit;
  parts.keyUses.note({ tag, keyId, atMs, address, userAgent: headers.get("user-agent") });
  parts.journal.open({ voided: voidOf(permit), hold: permit.hold });
}

/** Takes the request into flight. @returns why it may not go upstream. */
export function enterFlight(run: Run, key: WellFormedKey, permit: Permit, parts: PipelineParts): Refusal | undefined {
  const leave = parts.overload.enter(key);
  if (isRefusal(leave)) return { ...leave, facts: { ...leave.facts, group: permit.group.name } };
  run.leave = leave;
  return undefined;
}

/** What recognises the request when its client sends it again; undefined unless switched on and asked for. */
function idempotencyOf(run: Run, read: ReadBody, parts: PipelineParts): Idempotency | Refusal | undefined {
  const { enabled, keepMs } = parts.settings().idempotency;
  const key = enabled ? idempotencyKeyOf(run.request.headers) : undefined;
  if (key === undefined || isRefusal(key)) return key;
  const endpoint = PROTOCOLS[run.protocol].path + (run.endpoint.pathSuffix ?? "");
  return { ...idempotentRequest(key, endpoint, read.body), streamed: read.envelope.stream, keepMs };
}

/** The largest `total` among the model's routes: the request's whole life. */
function longestTotalMs(parts: PipelineParts, facts: { readonly model: string } | Refusal): number {
  const settings = parts.settings();
  const routes = (isRefusal(facts) ? undefined : settings.catalog.models.get(facts.model)?.routes) ?? [];
  return Math.max(0, ...routes.map((route) => settings.upstreams.get(route.upstream)?.timeouts.totalMs ?? 0));
}

/** Makes the body for a route, in its upstream's protocol, or says why that route cannot be given the request. */
interface Convert {
  readonly first: (route: Route) => AttemptRequest<AttemptConversion> | Refusal;
  /** Without the reasoning that the upstream has refused; undefined where it has none. */
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
  const startedMs = parts.clock.monotonicMs();
  const asked = { protocol, model, stream, ...read };
  const made = <E extends AttemptRequest<AttemptConversion> | Refusal | undefined>(encode: (route: Route) => E) => {
    return (route: Route) => {
      const encoded = encode(route);
      run.record.converted(startedMs);
      return encoded === undefined || isRefusal(encoded) ? encoded : traced(encoded, route, run, parts);
    };
  };
  const details = [endpoint.open, asked, permit, permitted, contextOf(parts, permit)] as const;
  return { first: made(encoderFor(...details)), withoutReasoning: made(encoderWithoutReasoning(...details)) };
}

/** Picks routes until an upstream answers; undefined when the client left meanwhile. */
export async function pickUpstream(
  run: Run,
  permit: Permit,
  read: ReadBody,
  convert: Convert,
  parts: PipelineParts,
): Promise<Answered<AttemptConversion> | Refusal | undefined> {
  const { request, protocol, endpoint } = run;
  const { model, stream } = read.envelope;
  const result = await parts.dispatcher.run<AttemptConversion>({
    routes: routesFor(permit.model.routes, read),
    stream,
    pathSuffix: endpoint.pathSuffix,
    headers: forwardedHeaders(protocol, request.headers),
    deadlineMs: parts.clock.monotonicMs() + longestTotalMs(parts, { model }),
    signal: request.signal,
    owner: { account: permit.tag, key: permit.keyId },
    conversation: conversationOf(run, permit, read),
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

/** Only a choice between upstreams needs to know which conversation it is; an endpoint beside the model path has none. */
function conversationOf({ protocol, request, endpoint }: Run, { tag, model }: Permit, { json }: ReadBody) {
  if (model.routes.length < 2 || endpoint.pathSuffix !== undefined) return undefined;
  const header = SESSION_HEADERS.find((name) => request.headers.get(name) !== undefined);
  const session = header === undefined ? undefined : request.headers.get(header);
  return conversationHash(protocol, json, session, [tag, model.name]);
}

/** The attempt gets its place in the trace, and its upstream the address of that place where it may know. */
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

/** A whole reply waits entirely for its charge to be durable. */
export async function relayWhole(
  run: Run,
  permit: Permit,
  answered: Answered<AttemptConversion>,
  parts: PipelineParts,
): Promise<undefined> {
  const { reply } = run;
  const { whole } = answered.token;
  if (!whole) throw new Error("an accepted whole reply was not converted");
  const delivered = !reply.gone;
  const cause = delivered ? COMPLETE : CLIENT_GONE;
  const measured = { ...whole.counts, silentMs: 0 };
  const { route } = answered;
  const ending = { delivered, complete: true, route, tier: tierSent(answered), cause, measured };
  await settleRequest(run, ending, parts);
  if (reply.gone) return;
  run.record.answered(200);
  run.record.firstToken();
  reply.whole(200, { "content-type": "application/json", ...replyHeaders(run, permit, answered, parts) }, whole.body);
}

/** The tier that the upstream was asked for which answered. */
function tierSent({ attempts }: Pick<Answered<AttemptConversion>, "attempts">): string | undefined {
  return attempts.at(-1)?.tier;
}

/** A stream: frames as they complete, the end once its charge is durable. */
export async function relayStreamed(
  run: Run,
  permit: Permit,
  answered: Answered<AttemptConversion>,
  parts: PipelineParts,
): Promise<undefined> {
  const { reply, record, protocol } = run;
  const { converter, first } = answered.token;
  const { route } = answered;
  const tier = tierSent(answered);
  if (!answered.body) throw new Error("an accepted stream has no body");
  record.answered(200);
  const thinks = paceOf(run, route, parts).thinks === "yes";
  const end = await relayStream({
    clock: parts.clock,
    askedAtMs: answered.attempts.at(-1)?.startedAtMs ?? parts.clock.monotonicMs(),
    heartbeatMs: parts.settings().heartbeatMs,
    reply,
    headers: replyHeaders(run, permit, answered, parts),
    converter,
    body: answered.body,
    first,
    settle: ({ reason, counts, ...end }) =>
      settleRequest(run, { ...end, route, tier, cause: reason, measured: counts }, parts),
    failure: (cause) => converter.fail(render(refusal(cause), protocol, reply.requestId, 403).answer, reply.requestId),
    onFirstToken: () => record.firstToken(),
    onProgress: checkpoints(run, permit, answered, parts),
    holdExtension: holdExtensionOf(run, permit, answered, parts),
    cut: parts.cut,
    thinks,
    leaving: (counts, delivered) => leavingOf(run, permit, { route, tier, counts, delivered }, parts),
  });
  record.streamEnded(end.reason);
}

/** Notes what a stream has produced, now and then: what it is charged for should this process die. */
function checkpoints(
  run: Run,
  admitted: Permit,
  { route, attempts }: Answered<AttemptConversion>,
  parts: PipelineParts,
): (counts: SeenCounts) => void {
  const { journal, clock } = parts;
  const due = new CheckpointPace();
  const pace = paceOf(run, route, parts);
  return (measured) => {
    if (!due.isDue(clock.monotonicMs(), measured.produced.bytes)) return;
    const cut = { delivered: true, complete: false, cause: "orphaned" };
    const ending: Ending = { ...cut, route, tier: tierSent({ attempts }), measured, attempts, pace };
    journal.checkpoint(settlementOf(run.permit ?? admitted, ending).ask);
  };
}

/** Extends the hold of a stream that may grow. What the store adds to the hold is the permit's from then on. */
function holdExtensionOf(
  run: Run,
  permit: Permit,
  answered: Answered<AttemptConversion>,
  parts: PipelineParts,
): HoldExtension | undefined {
  const { clock, store } = parts;
  const { growth, hold, requestId, tag } = permit;
  if (!growth) return undefined;
  const pace = paceOf(run, answered.route, parts);
  const tier = tierSent(answered);
  return new HoldExtension({
    growth,
    hold,
    clock,
    extend: (target) => store.extend({ requestId, tag, target }),
    costOf: (counts) => costSoFar(permit, counts, { cause: BRAKE, pace, tier }),
    onAnswer(outcome, held) {
      run.record.extended(outcome);
      // An answer that comes after the end finds its charge made.
      if (run.settled) return;
      run.permit = { ...permit, hold: held };
      run.record.held(held);
    },
  });
}

function replyHeaders(
  { protocol }: Run,
  permit: Permit,
  { token }: Answered<AttemptConversion>,
  { clock }: PipelineParts,
): Record<string, string> {
  const headers = limitHeaders(protocol, permit.limits, clock.wallMs());
  headers["x-tollgate-origin"] = "upstream";
  if (permit.clamped) headers["x-tollgate-clamped"] = permit.clamped;
  if (permit.group.fallback) headers["x-tollgate-paid-by"] = permit.entitlement === undefined ? "balance" : "card";
  if (token.exchange.translation) headers["x-tollgate-translation"] = token.exchange.translation;
  return headers;
}

/** Posts or voids the hold, once; resolves when the charge is durable and on its way to the store. */
export async function settleRequest(run: Run, ending: Ending, parts: PipelineParts): Promise<void> {
  if (!run.permit || run.settled) return;
  run.settled = true;
  const { route } = ending;
  if (route) run.record.answeredBy(ending.measured.answeredBy, route);
  const pace = route && paceOf(run, route, parts);
  // A drain that cuts what still runs closes connections too, and that is not the client's doing.
  const leftAllowance = parts.cut.aborted ? undefined : nanoUsd(BigInt(parts.settings().leftAllowanceNano));
  const attempts = triesOf(run, run.permit, parts);
  const charge = settlementOf(run.permit, { ...ending, pace, attempts, leftAllowance });
  run.record.charged(charge);
  if (route && run.endpoint.pathSuffix === undefined) learn(route, ending.measured, parts);
  await parts.settler.settle(charge.ask);
  run.record.settled();
}
