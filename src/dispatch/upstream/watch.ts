/** Logs and measures the upstreams: which are ejected, and how many requests wait. */

import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { RESOLVER_FAILED } from "../../values/program/shared-lookup.ts";
import type { DispatchWarning } from "../ask.ts";
import type { DispatcherOptions } from "../dispatcher.ts";
import type { UpstreamReport } from "./pool.ts";

const MS_PER_S = 1_000;

type Listening = Pick<Required<DispatcherOptions>, "onWarning" | "onEjected" | "onReturned" | "onWaited">;

interface Watching {
  readonly metrics: Metrics;
  readonly log: Log;
  /** Sends a notice to the configured webhook (docs/notices.md). */
  readonly notify?: (kind: "upstream_out" | "upstream_back", data: Readonly<Record<string, string>>) => void;
}

/** Creates the dispatcher's listeners. */
export function watchUpstreams({ metrics, log, notify }: Watching): Listening {
  /** Upstreams that are out and were reported: a probe that fails is not reported again. */
  const out = new Set<string>();
  return {
    onWarning: (warning) => log.warn({ ...warning, ...lookAt(warning) }, "an upstream needs the operator"),
    onEjected(upstream, { reason, restMs, repeated }) {
      metrics.upstreamEjections.inc({ upstream, reason });
      log.warn({ upstream, reason, rest_ms: Math.round(restMs), repeated }, "an upstream is ejected");
      if (repeated === 1 || !out.has(upstream))
        notify?.("upstream_out", { upstream, reason, rest_seconds: `${Math.ceil(restMs / MS_PER_S)}` });
      out.add(upstream);
    },
    onReturned(upstream) {
      log.info({ upstream }, "an upstream answers again");
      if (out.delete(upstream)) notify?.("upstream_back", { upstream });
    },
    onWaited: (upstream, waitedMs) => metrics.queueWait.observe({ upstream }, waitedMs / MS_PER_S),
  };
}

/** Where the mistake usually is if an upstream answers 404 or 405, is unreachable, or fails the TLS check. */
function lookAt({ kind, reason, status }: DispatchWarning): { readonly look_at?: string } {
  if (kind === "unreachable" && reason === RESOLVER_FAILED) {
    return {
      look_at: "the name servers of this machine (/etc/resolv.conf): they do not answer, or answer with an error",
    };
  }
  if (kind === "unreachable") return { look_at: "whether the upstream runs, then host and port of its base_url" };
  if (kind === "tls") {
    return {
      look_at:
        "whether base_url begins with https:// (the upstream speaks TLS) or http://, then its certificate, and tls of the upstream",
    };
  }
  if (status !== 404 && status !== 405) return {};
  return { look_at: "base_url of the upstream (most end in /v1), then model of the route" };
}

/** Sets the gauges when they are read: an ejection ends by time alone, without an event. */
export function measureUpstreams(upstreams: readonly UpstreamReport[], metrics: Metrics): void {
  // An upstream that is no longer configured is removed.
  metrics.upstreamHealthy.reset();
  metrics.queued.reset();
  for (const { name, health, isForgotten, queued } of upstreams) {
    // An upstream that is down stays unhealthy between two ejections. Without traffic, it would otherwise stay so
    // forever.
    metrics.upstreamHealthy.set({ upstream: name }, health === "healthy" || isForgotten ? 1 : 0);
    metrics.queued.set({ upstream: name }, queued);
  }
}
