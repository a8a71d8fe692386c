/**
 * The path of a request: accept, admit, convert, dispatch, settle, in this order, with the one `finally` that settles.
 * Read this file first.
 */
import { randomBytes } from "node:crypto";
import { type Envelope, type ReadBody, readEnvelope } from "./accept/envelope.ts";
import type { FailedKeys } from "./accept/failed-keys.ts";
import type { AcceptedRequest } from "./accept/listener.ts";
import type { Reply } from "./accept/reply.ts";
import { type AdmitParts, admit } from "./admit/admit.ts";
import { limitHeaders } from "./admit/limit-headers.ts";
import type { Permit } from "./admit/permit.ts";
import { render } from "./answer.ts";
import { type Attempt, encoderFor, inspector } from "./attempt.ts";
import { openExchange } from "./convert/bridge.ts";
import type { ConvertContext, Counts, OpenExchange } from "./convert/exchange.ts";
import type { Answered, AttemptRecord } from "./dispatch/ask.ts";
import type { Dispatcher } from "./dispatch/dispatcher.ts";
import { forwardedHeaders } from "./forwarded-headers.ts";
import type { Recorder, RequestRecord } from "./record.ts";
import { refuseBadKey } from "./refuse.ts";
import { relayStream } from "./relay.ts";
import type { Sealing } from "./sealing.ts";
import { type Ending, settlementOf, voidOf } from "./settle/charge.ts";
import { CheckpointPace } from "./settle/checkpoint-pace.ts";
import type { Journal } from "./settle/journal.ts";
import type { Settler } from "./settle/settler.ts";
import type { Route } from "./values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "./values/errors.ts";
import { randomBase62, type WellFormedKey } from "./values/key.ts";
import type { Protocol } from "./values/protocol.ts";
import type { Settings } from "./values/settings.ts";
import type { Clock } from "./values/time.ts";

export interface PipelineParts {
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly admit: AdmitParts;
  readonly failedKeys: FailedKeys;
  readonly dispatcher: Dispatcher;
  readonly journal: Journal;
  readonly settler: Settler;
  readonly sealing: Sealing;
  readonly recorder: Recorder;
  /** Aborts when running streams must end now: the deadline of a drain. */
  readonly cut: AbortSignal;
}

/** What an endpoint that asks a model for something brings of its own. */
export interface ModelEndpoint {
  /** Appended to the path of the upstream's protocol; undefined for the model path itself. */
  readonly pathSuffix: string | undefined;
  readonly read: (protocol: Protocol, body: Uint8Array) => ReadBody | Refusal;
  readonly open: OpenExchange;
  /** What the upstreams' refusal means at this endpoint. */
  readonly refused: (refused: Refusal, attempts: readonly AttemptRecord[]) => Refusal;
}

const MODEL_PATH: ModelEndpoint = {
  pathSuffix: undefined,
  read: readEnvelope,
  open: openExchange,
  refused: (refused) => refused,
};

/** One request on its way. */
interface Run {
  readonly protocol: Protocol;
  readonly endpoint: ModelEndpoint;
  readonly request: AcceptedRequest;
  readonly reply: Reply;
  readonly record: RequestRecord;
  permit: Permit | undefined;
  settled: boolean;
}

/** Nothing reached an upstream, or nothing came back: the hold is voided. */
const NOTHING_HAPPENED: Ending = {
  delivered: false,
  complete: false,
  route: undefined,
  cause: "not_answered",
  measured: { usage: undefined, final: false, producedBytes: 0 },
};

/** A hold outlives its request by this much, so that a slow settlement still finds it. */
const HOLD_GRACE_MS = 60_000;

/** Serves one request on a model path. Never rejects: a defect becomes a 500, or a broken connection once bytes are out. */
export async function serveModel(
  protocol: Protocol,
  request: AcceptedRequest,
  reply: Reply,
  parts: PipelineParts,
  endpoint = MODEL_PATH,
): Promise<void> {
  const record = parts.recorder.begin({ requestId: reply.requestId, protocol, receivedAtMs: request.receivedAtMs });
  const run: Run = { protocol, endpoint, request, reply, record, permit: undefined, settled: false };
  try {
    const refused = await answer(run, parts);
    if (refused) refuse(run, refused, parts);
  } catch (error) {
    record.crashed(error);
    if (reply.opened) reply.destroy();
    else refuse(run, refusal("internal"), parts);
  } finally {
    await settleOnce(run, NOTHING_HAPPENED, parts);
    await reply.finished;
    record.finish();
  }
}

/** The stages in order; what comes back is the refusal to send, if any. */
async function answer(run: Run, parts: PipelineParts): Promise<Refusal | undefined> {
  const { request, reply, record } = run;
  const key = presentedKey(run, parts);
  if (isRefusal(key)) return key;
  const body = await request.readBody();
  record.bodyRead();
  const read = isRefusal(body) ? body : run.endpoint.read(run.protocol, body);
  const permit = await admitted(run, key, read, parts);
  if (isRefusal(permit)) return permit;
  if (isRefusal(read) || reply.gone) return isRefusal(read) ? read : undefined;
  const answered = await dispatched(run, permit, read, parts);
  if (isRefusal(answered) || answered === undefined) return answered;
  return read.envelope.stream ? relayed(run, permit, answered, parts) : wholly(run, permit, answered, parts);
}

function presentedKey(run: Run, parts: PipelineParts): WellFormedKey | Refusal {
  const { key, clientAddress } = run.request;
  if (isRefusal(key)) return key;
  if (key === "noise" || !parts.failedKeys.mayLookUp(clientAddress)) return refusal("unknown_key");
  return key;
}

async function admitted(
  run: Run,
  key: WellFormedKey,
  read: ReadBody | Refusal,
  parts: PipelineParts,
): Promise<Permit | Refusal> {
  const facts: Envelope | Refusal = isRefusal(read) ? read : read.envelope;
  if (!isRefusal(facts)) run.record.asked(facts.model);
  // What could not be recorded is not begun (reliability invariant 29).
  if (!parts.journal.health().usable) return refusal("journal_full");
  const permit = await admit(
    {
      requestId: run.request.id,
      protocol: run.protocol,
      key,
      facts,
      holdTtlMs: longestTotalMs(parts, facts) + HOLD_GRACE_MS,
    },
    parts.admit,
  );
  if (isRefusal(permit)) return permit;
  run.permit = permit;
  run.record.admitted(permit.group.name);
  parts.journal.open({ voided: voidOf(permit), hold: permit.hold });
  return permit;
}

/** The largest `total` among the model's routes: the request's whole life (DESIGN.md section 3). */
function longestTotalMs(parts: PipelineParts, facts: { readonly model: string } | Refusal): number {
  const settings = parts.settings();
  const routes = (isRefusal(facts) ? undefined : settings.catalog.models.get(facts.model)?.routes) ?? [];
  return Math.max(0, ...routes.map((route) => settings.upstreams.get(route.upstream)?.timeouts.totalMs ?? 0));
}

async function dispatched(
  run: Run,
  permit: Permit,
  read: ReadBody,
  parts: PipelineParts,
): Promise<Answered<Attempt> | Refusal | undefined> {
  const { request, protocol, endpoint } = run;
  const { model, stream } = read.envelope;
  const startedMs = parts.clock.monotonicMs();
  const permitted = { outputLimit: permit.outputLimit, strict: request.headers.get("x-tollgate-strict") === "1" };
  const result = await parts.dispatcher.run<Attempt>({
    routes: permit.model.routes,
    stream,
    pathSuffix: endpoint.pathSuffix,
    headers: forwardedHeaders(protocol, request.headers),
    deadlineMs: startedMs + longestTotalMs(parts, { model }),
    signal: request.signal,
    encodeFor: (route) => {
      const encoded = encoderFor(
        endpoint.open,
        { protocol, model, stream, ...read },
        permit,
        permitted,
        contextOf(parts, permit),
      )(route);
      run.record.converted(startedMs);
      return encoded;
    },
    inspector,
  });
  run.record.dispatched(result.attempts);
  if (result.answered) {
    run.record.translated(result.route.protocol, result.token.exchange.request.dropped);
    return result;
  }
  if (result.clientGone) return undefined;
  const refused = endpoint.refused(result.refusal, result.attempts);
  return { ...refused, facts: { model, group: permit.group.name, ...refused.facts } };
}

/** Envelopes are bound to the account: one that another tenant brings is a stranger's (promise 14). */
export function contextOf(
  { clock, sealing }: Pick<PipelineParts, "clock" | "sealing">,
  { tag }: Pick<Permit, "tag">,
): ConvertContext {
  return {
    nowS: Math.floor(clock.wallMs() / 1_000),
    randomId: (length) => randomBase62(length, randomBytes),
    seal: (content, context) => sealing.seal(content, `${tag}:${context}`),
    open: (envelope, context) => sealing.open(envelope, `${tag}:${context}`),
  };
}

/** A whole reply waits entirely for its charge to be durable. */
async function wholly(run: Run, permit: Permit, answered: Answered<Attempt>, parts: PipelineParts): Promise<undefined> {
  const { reply } = run;
  const { whole } = answered.token;
  if (!whole) throw new Error("an accepted whole reply was not converted");
  const delivered = !reply.gone;
  const measured = whole.counts;
  await settleOnce(run, { delivered, complete: true, route: answered.route, cause: "client_gone", measured }, parts);
  run.record.answered(200);
  run.record.firstToken();
  reply.whole(200, { "content-type": "application/json", ...replyHeaders(run, permit, answered, parts) }, whole.body);
}

async function relayed(
  run: Run,
  permit: Permit,
  answered: Answered<Attempt>,
  parts: PipelineParts,
): Promise<undefined> {
  const { reply, record, protocol } = run;
  const { converter, first } = answered.token;
  if (!answered.body) throw new Error("an accepted stream has no body");
  record.answered(200);
  const end = await relayStream({
    clock: parts.clock,
    heartbeatMs: parts.settings().heartbeatMs,
    reply,
    headers: replyHeaders(run, permit, answered, parts),
    converter,
    body: answered.body,
    first,
    settle: ({ reason, complete, delivered, counts }) =>
      settleOnce(run, { delivered, complete, route: answered.route, cause: reason, measured: counts }, parts),
    failure: (cause) => converter.fail(render(refusal(cause), protocol, reply.requestId, 403).answer, reply.requestId),
    onFirstToken: () => record.firstToken(),
    onProgress: checkpoints(permit, answered.route, parts),
    cut: parts.cut,
  });
  record.streamEnded(end.reason);
}

/** Notes what a stream has produced, now and then: what it is charged for should this process die. */
function checkpoints(permit: Permit, route: Route, { journal, clock }: PipelineParts): (counts: Counts) => void {
  const pace = new CheckpointPace();
  return (measured) => {
    if (!pace.isDue(clock.monotonicMs(), measured.producedBytes)) return;
    const ending: Ending = { delivered: true, complete: false, route, cause: "orphaned", measured };
    journal.checkpoint(settlementOf(permit, ending).ask);
  };
}

function replyHeaders(
  { protocol }: Run,
  permit: Permit,
  { token }: Answered<Attempt>,
  { clock }: PipelineParts,
): Record<string, string> {
  const headers = limitHeaders(protocol, permit.limits, clock.wallMs());
  headers["x-tollgate-origin"] = "upstream";
  if (permit.clamped) headers["x-tollgate-clamped"] = permit.clamped;
  if (token.exchange.translation) headers["x-tollgate-translation"] = token.exchange.translation;
  return headers;
}

/** Posts or voids the hold, once; resolves when the charge is durable and on its way to the store. */
async function settleOnce(run: Run, ending: Ending, parts: PipelineParts): Promise<void> {
  if (!run.permit || run.settled) return;
  run.settled = true;
  const charge = settlementOf(run.permit, ending);
  run.record.charged(charge);
  await parts.settler.settle(charge.ask);
}

function refuse(run: Run, refused: Refusal, parts: PipelineParts): void {
  const { reply, record, request, protocol } = run;
  if (reply.gone || reply.opened) return;
  const limited = refuseBadKey(refused, request, parts.failedKeys);
  const { answer, status, headers, body } = render(
    limited,
    protocol,
    reply.requestId,
    parts.settings().upstreamUnavailableStatus,
  );
  record.groupKnown(refused.facts.group);
  record.refused(answer, status);
  reply.whole(status, headers, body);
}
