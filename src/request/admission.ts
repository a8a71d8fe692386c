/** The second step of a request: it is admitted, and its hold is written to the journal. */

import type { ReadBody } from "../accept/envelope.ts";
import { idempotencyKeyOf } from "../accept/headers.ts";
import { admit } from "../admit/admit.ts";
import type { Permit } from "../admit/permit.ts";
import { voidOf } from "../settle/lines.ts";
import type { Route } from "../values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import { type Idempotency, idempotentRequest } from "../values/idempotency.ts";
import type { WellFormedKey } from "../values/key.ts";
import type { Envelope } from "../values/members/envelope.ts";
import { PROTOCOLS } from "../values/protocol.ts";
import type { RequestRead } from "./receive.ts";
import type { PipelineParts, Run } from "./run.ts";

const NO_ROUTES: readonly Route[] = [];

/** A hold outlives its request by this much, so that a slow settlement still finds it. */
const HOLD_GRACE_MS = 60_000;

/** Asks whether the request may run, and who pays. Not an async function, because one more takes 0.4 us. */
export function admitRequest(
  run: Run,
  key: WellFormedKey,
  { read, view, address }: RequestRead,
  parts: PipelineParts,
): Promise<Permit | Refusal> | Refusal {
  if (!isRefusal(read)) run.totalMs = longestTotalMs(parts, read.envelope);
  const idempotency = isRefusal(read) ? undefined : idempotencyOf(run, read, parts);
  const facts: Envelope | Refusal = isRefusal(read) ? read : isRefusal(idempotency) ? idempotency : read.envelope;
  if (!isRefusal(facts)) run.record.asked(facts.model);
  // A request that could not be recorded is not started (docs/failure-model.md invariant 29).
  if (!parts.journal.health().usable) return refusal("journal_full");
  return admit(
    {
      requestId: run.request.id,
      protocol: run.protocol,
      key,
      address,
      view,
      facts,
      holdTtlMs: run.totalMs + HOLD_GRACE_MS,
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

/**
 * Identifies a repetition of the request by its client; undefined unless the feature is enabled and the client uses it.
 */
function idempotencyOf(run: Run, read: ReadBody, parts: PipelineParts): Idempotency | Refusal | undefined {
  const { enabled, keepMs } = parts.settings().idempotency;
  const key = enabled ? idempotencyKeyOf(run.request.headers) : undefined;
  if (key === undefined || isRefusal(key)) return key;
  const endpoint = PROTOCOLS[run.protocol].path + (run.endpoint.pathSuffix ?? "");
  return { ...idempotentRequest(key, endpoint, read.body), streamed: read.envelope.stream, keepMs };
}

/** The largest `total` among the model's routes: the maximum lifetime of the request. */
function longestTotalMs(parts: PipelineParts, { model }: Envelope): number {
  const settings = parts.settings();
  let longest = 0;
  for (const { upstream } of settings.catalog.models.get(model)?.routes ?? NO_ROUTES) {
    longest = Math.max(longest, settings.upstreams.get(upstream)?.timeouts.totalMs ?? 0);
  }
  return longest;
}
