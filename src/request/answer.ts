/** The last step of a request: its answer is delivered to the client, and settled before it ends. */

import { limitHeaders } from "../admit/limit-headers.ts";
import type { Permit } from "../admit/permit.ts";
import type { Answered } from "../dispatch/ask.ts";
import { CLIENT_GONE, COMPLETE } from "../settle/meter.ts";
import { refusal } from "../values/errors.ts";
import type { AttemptConversion } from "./conversion.ts";
import { isKept } from "./disconnect.ts";
import { render } from "./refuse.ts";
import { relayStream } from "./relay.ts";
import type { PipelineParts, Run } from "./run.ts";
import { StreamBill, settleRequest, tierSent } from "./settlement.ts";
import { askKeptAt } from "./stored/kept-answer.ts";
import { KEPT_HELD_BACK_MS_MAX } from "./stream-timers.ts";

/** A whole reply is sent only after its charge is durable. It has no first token: its time is that of the request. */
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
  reply.whole(200, { "content-type": "application/json", ...replyHeaders(run, permit, answered, parts) }, whole.body);
}

/**
 * A stream: frames are sent as they complete, the end once the charge is durable. What was needed to ask an upstream is
 * released when the stream begins: nothing that lives as long as the stream may hold the request's body or what was
 * read from it.
 */
export function relayStreamed(
  run: Run,
  permit: Permit,
  answered: Answered<AttemptConversion>,
  parts: PipelineParts,
): Promise<undefined> {
  const { reply, record, protocol } = run;
  const { route, attempts, body, token } = answered;
  const { converter, first } = token;
  if (!body) throw new Error("an accepted stream has no body");
  record.answered(200);
  run.request.forgetBody();
  const headers = replyHeaders(run, permit, answered, parts);
  const kept = isKept(run, route);
  const bill = new StreamBill(run, permit, { route, attempts }, parts);
  return relayStream({
    clock: parts.clock,
    askedAtMs: attempts.at(-1)?.startedAtMs ?? parts.clock.monotonicMs(),
    heartbeatMs: parts.settings().heartbeatMs,
    reply,
    headers,
    converter,
    body,
    first,
    askKept: kept ? askKeptAt(route, parts, (state) => record.askedKept(route.upstream, state)) : undefined,
    // If a card without a quota pays, nothing is charged, and the client may be as slow as it likes.
    heldBackMsMax: kept && !permit.unmetered ? KEPT_HELD_BACK_MS_MAX : undefined,
    bill,
    failure: (cause) => {
      const refused = refusal(cause, { model: permit.model.name, group: permit.group.name });
      return converter.fail(render(refused, protocol, reply.requestId, 403).answer, reply.requestId);
    },
    onFirstToken: () => record.firstToken(),
    cut: parts.cut,
  }).then((end) => {
    record.streamEnded(end.reason);
    return undefined;
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
