/** The listener that clients reach, with its pipeline, and how it is drained. */
import { randomBytes } from "node:crypto";
import { type AcceptedRequest, createListener, type Listener } from "../accept/listener.ts";
import type { Reply } from "../accept/reply.ts";
import { render } from "../request/answer.ts";
import type { PipelineParts } from "../request/run.ts";
import { serveModel } from "../request/serve.ts";
import type { Store } from "../store/contract.ts";
import type { Log } from "../telemetry/log.ts";
import type { Refusal } from "../values/errors.ts";
import { pooled } from "../values/key.ts";
import type { Protocol } from "../values/protocol.ts";
import { newRequestId } from "../values/request-id.ts";
import type { Settings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { serveSide } from "./endpoints.ts";
import { NativeCounts } from "./native-counts.ts";
import { SideRates } from "./rate.ts";

/** How long a stream's proper end may take to reach its client after the deadline of a drain. */
const CUT_GRACE_MS = 2_000;
/** For request ids, which are no secrets. */
const RANDOM = pooled(randomBytes);

/** @param shared whether other processes listen at the same address, which the parent has taken for all. */
export function publicListener(parts: PipelineParts, store: Store, log: Log, shared: boolean): Listener {
  const { clock } = parts;
  const settings = parts.settings();
  const side = { ...parts, nativeCounts: new NativeCounts(clock), usage: store, sideRates: new SideRates(clock) };
  const rendered = (refused: Refusal, protocol: Protocol, requestId: string) =>
    render(refused, protocol, requestId, parts.settings().upstreamUnavailableStatus);
  const refuse = (refused: Refusal, protocol: Protocol, reply: Reply) => {
    const { answer, status, headers, body } = rendered(refused, protocol, reply.requestId);
    const record = parts.recorder.begin({ requestId: reply.requestId, protocol, receivedAtMs: clock.monotonicMs() });
    record.refused(answer, status);
    record.finish();
    if (!reply.gone) reply.whole(status, headers, body);
  };
  return createListener(
    {
      address: settings.listen,
      shared,
      bodyBytesMax: settings.bodyBytesMax,
      trustProxy: settings.trustProxy,
      corsOrigins: settings.corsOrigins,
      siteUrl: () => parts.settings().site,
      clock,
      newRequestId: () => newRequestId(clock.wallMs(), RANDOM),
      connectionGuard: parts.overload.connectionGuard,
    },
    {
      onRequest: (request: AcceptedRequest, reply: Reply) =>
        request.route.kind === "model"
          ? serveModel(request.route.protocol, request, reply, parts)
          : serveSide(request, reply, side),
      onRefusal: refuse,
      renderRefusal: rendered,
      onCrash: (error) => log.error({ reason: reasonOf(error) }, "a request failed on a defect of the gateway"),
    },
  );
}

/**
 * ARCHITECTURE.md promise 12: the front has been notified; late requests are still served, then running ones finish.
 */
export async function drainListener(
  listener: Listener,
  settings: Settings,
  clock: Clock,
  cut: () => void,
): Promise<void> {
  listener.lameDuck();
  await new Promise<void>((resolve) => clock.after(settings.drain.lameDuckMs, resolve));
  const closed = listener.close();
  let cancel = clock.after(settings.drain.deadlineMs, () => {
    cut();
    // What has not ended properly by then has a client that does not read.
    cancel = clock.after(CUT_GRACE_MS, () => listener.destroy());
  });
  await closed;
  cancel();
}

/** The stack of what was thrown, for the log. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
