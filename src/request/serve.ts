/**
 * The path of a request: accept, admit, convert, dispatch, settle, in this order, with the one `finally` that settles.
 * Read this file first; `stages.ts` has what each step does.
 */
import { readEnvelopeInTurns } from "../accept/envelope.ts";
import type { AcceptedRequest } from "../accept/listener.ts";
import type { Reply } from "../accept/reply.ts";
import { openExchange } from "../convert/bridge.ts";
import { NOTHING_PRODUCED } from "../convert/produced.ts";
import { asksToThink } from "../convert/thinking-asked.ts";
import type { Ending } from "../settle/charge.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import { render } from "./answer.ts";
import { presentedKey, refuseBadKey } from "./refuse.ts";
import type { ModelEndpoint, PipelineParts, Run } from "./run.ts";
import { admitted, dispatched, keyCheck, relayed, settleOnce, wholly } from "./stages.ts";

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

/** Serves one request on a model path. Never rejects: a defect becomes a 500, or a broken connection once bytes are out. */
export async function serveModel(
  protocol: Protocol,
  request: AcceptedRequest,
  reply: Reply,
  parts: PipelineParts,
  endpoint = MODEL_PATH,
): Promise<void> {
  const { receivedAtMs, traceparent, path } = request;
  const record = parts.recorder.begin({ requestId: reply.requestId, protocol, receivedAtMs, traceparent, path });
  const run: Run = {
    protocol,
    endpoint,
    request,
    reply,
    record,
    permit: undefined,
    asksToThink: false,
    streamed: false,
    attempts: [],
    settled: false,
    leave: undefined,
  };
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
    run.leave?.();
    record.finish();
  }
}

/** The stages in order; what comes back is the refusal to send, if any. */
async function answer(run: Run, parts: PipelineParts): Promise<Refusal | undefined> {
  const { request, reply, record } = run;
  const key = presentedKey(request, parts);
  if (isRefusal(key)) return key;
  const shed = parts.overload.at("headers", key);
  if (shed) return shed;
  const check = keyCheck(key, parts);
  const body = await request.readBody(check.gate);
  record.bodyRead();
  if (check.refused) return check.refused;
  const read = isRefusal(body) ? body : await run.endpoint.read(run.protocol, body);
  const shedLater = isRefusal(read) ? undefined : parts.overload.at("body", key);
  if (shedLater) return shedLater;
  const permit = await admitted(run, key, check.view, read, parts);
  if (isRefusal(permit)) return permit;
  if (isRefusal(read) || reply.gone) return isRefusal(read) ? read : undefined;
  const leave = parts.overload.enter(key);
  if (isRefusal(leave)) return { ...leave, facts: { ...leave.facts, group: permit.group.name } };
  run.leave = leave;
  run.asksToThink = asksToThink(read.json);
  run.streamed = read.envelope.stream;
  const answered = await dispatched(run, permit, read, parts);
  if (isRefusal(answered) || answered === undefined) return answered;
  return read.envelope.stream ? relayed(run, permit, answered, parts) : wholly(run, permit, answered, parts);
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
