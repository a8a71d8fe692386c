/** Reports a charge once it is known: metrics for the counts, and a log line for each impossible count. */
import type { Charge } from "../../settle/charge.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { totalInput } from "../../values/tokens/usage.ts";

/** The request that was charged; its names come from the configuration, so they may be labels. */
interface ChargedRequest {
  readonly requestId: string;
  readonly group: string;
  readonly model: string;
  /** The upstream of the last attempt, or `none`. */
  readonly upstream: string;
}

interface ReportParts {
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Reports a charge; of a voided one, only impossible counts. */
export function reportCharge(charge: Charge, request: ChargedRequest, parts: ReportParts): void {
  const { metered, ask, unpaidCalls } = charge;
  const { metrics } = parts;
  const { group, model, upstream } = request;
  reportSurprises(charge, request, parts);
  for (const { calls, reason } of unpaidCalls) metrics.unpaidToolCalls.inc({ model, upstream, reason }, calls);
  if (!metered || ask.voided) return;
  const { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning } = metered.usage;
  const countTokens = (kind: string, count: number) => {
    if (count > 0) metrics.tokens.inc({ group, model, kind }, count);
  };
  countTokens("input", input);
  countTokens("cached_input", cachedInput);
  countTokens("cache_write", cacheWrite + cacheWrite1h);
  countTokens("output", output);
  countTokens("reasoning", reasoning);
}

/** Reports counts that are impossible by the catalog: either the catalog or the upstream is wrong. */
function reportSurprises(
  { surprises, ask, metered }: Charge,
  { requestId, model }: ChargedRequest,
  { metrics, log }: ReportParts,
): void {
  if (!metered || surprises.length === 0) return;
  const upstream = ask.upstream ?? "none";
  for (const kind of surprises) metrics.surprisingCounts.inc({ upstream, model, kind });
  const { usage } = metered;
  const counts = { input_tokens: totalInput(usage), output_tokens: usage.output };
  const facts = { request: requestId, upstream, model, surprise: surprises.join(","), ...counts };
  log.warn(facts, "an upstream counts more than it was asked for, or more than the model can do");
}
