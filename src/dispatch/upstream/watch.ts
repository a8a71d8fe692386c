/** Logs and measures the upstreams: which are passed over, and how many requests wait. */

import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { DispatchWarning } from "../ask.ts";
import type { DispatcherOptions } from "../dispatcher.ts";
import type { UpstreamReport } from "./pool.ts";

const MS_PER_S = 1_000;

type Listening = Pick<Required<DispatcherOptions>, "onWarning" | "onEjected" | "onReturned" | "onWaited">;

interface Watching {
  readonly metrics: Metrics;
  readonly log: Log;
  /** Tells who wants to be told of it (docs/notices.md). */
  readonly tell?: (kind: "upstream_out" | "upstream_back", data: Readonly<Record<string, string>>) => void;
}

/** The dispatcher's listeners. */
export function watchUpstreams({ metrics, log, tell }: Watching): Listening {
  /** Those that are out and told of: a probe that fails is no news. */
  const out = new Set<string>();
  return {
    onWarning: (warning) => log.warn({ ...warning, ...lookAt(warning) }, "an upstream needs the operator"),
    onEjected(upstream, { reason, restMs, repeated }) {
      metrics.upstreamEjections.inc({ upstream, reason });
      log.warn({ upstream, reason, rest_ms: Math.round(restMs), repeated }, "an upstream is passed over for now");
      if (repeated === 1 || !out.has(upstream))
        tell?.("upstream_out", { upstream, reason, rest_seconds: `${Math.ceil(restMs / MS_PER_S)}` });
      out.add(upstream);
    },
    onReturned(upstream) {
      log.info({ upstream }, "an upstream answers again");
      if (out.delete(upstream)) tell?.("upstream_back", { upstream });
    },
    onWaited: (upstream, waitedMs) => metrics.queueWait.observe({ upstream }, waitedMs / MS_PER_S),
  };
}

/** Where the mistake is as a rule, when an upstream has nothing where it is asked, nobody is there, or it is not recognised. */
function lookAt({ kind, status }: DispatchWarning): { readonly look_at?: string } {
  if (kind === "unreachable") return { look_at: "whether the upstream runs, then host and port of its base_url" };
  if (kind === "tls") {
    return {
      look_at:
        "whether the upstream speaks TLS (without it base_url begins with http://), then its certificate and tls",
    };
  }
  if (status !== 404 && status !== 405) return {};
  return { look_at: "base_url of the upstream (most end in /v1), then model of the route" };
}

/** Sets the gauges when somebody looks: an upstream's rest ends by time alone, and no event says so. */
export function measureUpstreams(upstreams: readonly UpstreamReport[], metrics: Metrics): void {
  // An upstream that is no longer configured goes from the page.
  metrics.upstreamHealthy.reset();
  metrics.queued.reset();
  for (const { name, standing, isForgotten, queued } of upstreams) {
    // Between two rests of one that is down it is out all the same; without traffic it would be for ever.
    metrics.upstreamHealthy.set({ upstream: name }, standing === "healthy" || isForgotten ? 1 : 0);
    metrics.queued.set({ upstream: name }, queued);
  }
}
