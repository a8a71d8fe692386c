/**
 * Reports a charge once it is known: metrics for what was counted, and a log line for each count that is impossible.
 */
import type { Charge } from "../settle/charge.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { totalInput } from "../values/tokens/usage.ts";

/** Whose charge it is; names from the configuration, so that they may be labels. */
interface ChargedRequest {
  readonly requestId: string;
  readonly group: string;
  readonly model: string;
  /** The upstream of the last try, or `none`. */
  readonly upstream: string;
}

interface ReportParts {
  readonly metrics: Metrics;
  readonly log: Log;
}

export function reportCharge(charge: Charge, request: ChargedRequest, parts: ReportParts): void {
  const { metered, ask, unpaidCalls } = charge;
  const { metrics } = parts;
  const { group, model, upstream } = request;
  reportSurprises(charge, request, parts);
  for (const { calls, reason } of unpaidCalls) metrics.unpaidToolCalls.inc({ model, upstream, reason }, calls);
  if (!metered || ask.voided) return;
  const { usage } = metered;
  for (const [kind, count] of [
    ["input", usage.input],
    ["cached_input", usage.cachedInput],
    ["cache_write", usage.cacheWrite + usage.cacheWrite1h],
    ["output", usage.output],
    ["reasoning", usage.reasoning],
  ] as const) {
    if (count > 0) metrics.tokens.inc({ group, model, kind }, count);
  }
}

/** Counts that are impossible by the catalog: either the catalog or the upstream is wrong. */
function reportSurprises(
  { surprises, ask, metered }: Charge,
  { requestId, model }: ChargedRequest,
  { metrics, log }: ReportParts,
): void {
  if (!metered) return;
  const upstream = ask.upstream ?? "none";
  metrics.expectCounts(upstream, model);
  if (surprises.length === 0) return;
  for (const kind of surprises) metrics.surprisingCounts.inc({ upstream, model, kind });
  const { usage } = metered;
  const counts = { input_tokens: totalInput(usage), output_tokens: usage.output };
  const facts = { request: requestId, upstream, model, surprise: surprises.join(","), ...counts };
  log.warn(facts, "an upstream counts more than it was asked for, or more than the model can do");
}
