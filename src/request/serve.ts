/**
 * The path of a request: read, admit, open, pick, convert, relay, and in every case settle. Read this file first; the
 * files of its steps explain each of them.
 */
import { readEnvelopeInTurns } from "../accept/envelope.ts";
import type { AcceptedRequest } from "../accept/listener.ts";
import type { Reply } from "../accept/reply.ts";
import { openExchange } from "../convert/bridge.ts";
import { NOTHING_PRODUCED } from "../convert/produced.ts";
import { asksToThink } from "../convert/thinking-asked.ts";
import type { Ending } from "../settle/meter.ts";
import { ERROR_ROWS, isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import { admitRequest, openHold } from "./admission.ts";
import { relayStreamed, relayWhole } from "./answer.ts";
import { conversionOf, enterFlight, pickUpstream } from "./pick.ts";
import { readRequest } from "./receive.ts";
import { presentedKey, refuseBadKey, render } from "./refuse.ts";
import type { ModelEndpoint, PipelineParts, Run } from "./run.ts";
import { keyFreed, settleRequest } from "./settlement.ts";

const MODEL_PATH: ModelEndpoint = {
  pathSuffix: undefined,
  read: readEnvelopeInTurns,
  open: openExchange,
  refused: (refused) => refused,
};

/** Nothing reached an upstream, or nothing came back: the hold is voided. */
const NOTHING_HAPPENED: Ending = {
  delivered: false,
  complete: false,
  route: undefined,
  cause: "not_answered",
  measured: { usage: undefined, final: false, produced: NOTHING_PRODUCED, silentMs: 0 },
};

/**
 * Serves one request on a model path. Never rejects: a defect becomes a 500, or a broken connection once bytes were
 * sent.
 */
export async function serveModel(
  protocol: Protocol,
  request: AcceptedRequest,
  reply: Reply,
  parts: PipelineParts,
  endpoint = MODEL_PATH,
): Promise<void> {
  await parts.cohort.join();
  const { receivedAtMs, traceparent, path } = request;
  const { requestId, frontRequest } = reply;
  const record = parts.recorder.begin({ requestId, frontRequest, protocol, receivedAtMs, traceparent, path });
  const run: Run = {
    protocol,
    endpoint,
    request,
    reply,
    record,
    model: undefined,
    permit: undefined,
    totalMs: 0,
    asksToThink: false,
    readsAgain: false,
    streamed: false,
    attempts: [],
    settled: false,
    leave: undefined,
  };
  try {
    const refused = await takeSteps(run, parts);
    if (refused) await freeKey(run, parts);
    if (refused) refuse(run, refused, parts);
  } catch (error) {
    record.crashed(error);
    await freeKey(run, parts);
    if (reply.opened) reply.destroy();
    else refuse(run, refusal("internal"), parts);
  } finally {
    request.forgetBody();
    if (run.permit && !run.settled) await releaseHold(run, parts);
    await reply.finished;
    await parts.cohort.join();
    run.leave?.();
    record.finish();
  }
}

/** Frees the idempotency key of a request that failed, if it has one, before its answer. */
async function freeKey(run: Run, parts: PipelineParts): Promise<void> {
  if (!run.permit?.idempotency || run.settled) return;
  await releaseHold(run, parts);
  await keyFreed(run, parts);
}

/** Settles a request without an answer. After a defect here, the hold ends by its own time. */
async function releaseHold(run: Run, parts: PipelineParts): Promise<void> {
  await settleRequest(run, NOTHING_HAPPENED, parts).catch((error: unknown) => run.record.crashed(error));
}

/** The steps in order, up to the settlement. @returns the refusal to send, if any. */
async function takeSteps(run: Run, parts: PipelineParts): Promise<Refusal | undefined> {
  const key = presentedKey(run.request, parts);
  if (isRefusal(key)) return key;
  const received = await readRequest(run, key, parts);
  if (isRefusal(received)) return received;
  const permit = await admitRequest(run, key, received, parts);
  if (isRefusal(permit)) return permit;
  openHold(run, permit, parts);
  const { read } = received;
  if (isRefusal(read) || run.reply.gone) return isRefusal(read) ? read : undefined;
  const noRoom = enterFlight(run, key, permit, parts);
  if (noRoom) return noRoom;
  run.asksToThink = asksToThink(read.json);
  run.readsAgain = read.envelope.keepsReply === true;
  run.streamed = read.envelope.stream;
  const convert = conversionOf(run, permit, read, parts);
  const answered = await pickUpstream(run, permit, read, convert, parts);
  if (isRefusal(answered) || answered === undefined) return answered;
  // While this waits, all of the above stays in memory, so nothing may wait here for as long as a stream lasts.
  // Returning a promise takes two more microtasks.
  if (run.streamed) return relayStreamed(run, permit, answered, parts);
  return await relayWhole(run, permit, answered, parts);
}

/**
 * A refusal with the request's model and group, so that its message names them whatever the cause is. A refused key is
 * at fault for every model.
 */
function withSubject(refused: Refusal, { model, permit }: Run): Refusal {
  if (model === undefined || ERROR_ROWS[refused.cause].status === 401) return refused;
  return { ...refused, facts: { model, group: permit?.group.name, ...refused.facts } };
}

function refuse(run: Run, refused: Refusal, parts: PipelineParts): void {
  const { reply, record, request, protocol } = run;
  if (reply.gone || reply.opened) return;
  const limited = refuseBadKey(withSubject(refused, run), request, parts.failedKeys);
  const { answer, status, headers, body } = render(
    limited,
    protocol,
    reply.requestId,
    parts.settings().upstreamUnavailableStatus,
  );
  record.groupKnown(refused.facts.group, request.key);
  record.refused(answer, status);
  reply.whole(status, headers, body);
}
