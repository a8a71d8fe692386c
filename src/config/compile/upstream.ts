/** One model server of the configuration: units read, defaults filled in. */
import { Secret } from "../../values/secret.ts";
import type { HealthSettings, QueueSettings, UpstreamSettings } from "../../values/settings.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import type { Sources } from "../expand.ts";
import type { ConfigPath } from "../problems.ts";
import { readBaseUrl } from "./addresses.ts";
import { isFieldValue, readHeaderValues } from "./headers.ts";
import type { LooseUpstream, Reader } from "./reader.ts";
import { readTls } from "./tls.ts";

/** One entry of `upstreams`; its PEM files are read here, so that a reload notices when they have changed. */
export function readUpstream(
  reader: Reader,
  path: ConfigPath,
  name: string,
  upstream: LooseUpstream,
  sources: Sources,
): UpstreamSettings {
  const timeouts = upstream.timeouts ?? {};
  const timeout = (key: keyof typeof timeouts, defaultMs: number) =>
    reader.durationMs([...path, "timeouts", key], timeouts[key], defaultMs, LIMITS.timerMsMax);
  return {
    name,
    protocol: upstream.protocol ?? "chat",
    baseUrl: reader.read([...path, "base_url"], upstream.base_url, readBaseUrl) ?? "",
    apiKey: readCredential(reader, [...path, "api_key"], upstream.api_key),
    headers: readHeaderValues(reader, [...path, "headers"], upstream.headers ?? {}, OWNED_HEADERS),
    timeouts: {
      connectMs: timeout("connect", DEFAULTS.timeoutConnectMs),
      firstByteMs: timeout("first_byte", DEFAULTS.timeoutFirstByteMs),
      wholeMs: timeout("whole", DEFAULTS.timeoutWholeMs),
      idleMs: timeout("idle", DEFAULTS.timeoutIdleMs),
      totalMs: timeout("total", DEFAULTS.timeoutTotalMs),
    },
    maxConcurrency: upstream.max_concurrency ?? DEFAULTS.upstreamConcurrency,
    queue: readQueue(reader, [...path, "queue"], upstream.queue ?? {}),
    health: readHealth(reader, [...path, "health"], upstream.health ?? {}),
    onClientGone: upstream.on_client_gone ?? DEFAULTS.onClientGone,
    clientGoneGraceMs: reader.durationMs(
      [...path, "client_gone_grace"],
      upstream.client_gone_grace,
      DEFAULTS.clientGoneGraceMs,
      LIMITS.clientGoneGraceMsMax,
      { zero: true },
    ),
    tls: readTls(reader, [...path, "tls"], upstream.tls ?? {}, sources),
  };
}

function readQueue(reader: Reader, path: ConfigPath, queue: NonNullable<LooseUpstream["queue"]>): QueueSettings {
  return {
    max: queue.max ?? DEFAULTS.queueMax,
    waitMs: reader.durationMs([...path, "wait"], queue.wait, DEFAULTS.queueWaitMs, LIMITS.queueWaitMsMax),
  };
}

function readHealth(reader: Reader, path: ConfigPath, health: NonNullable<LooseUpstream["health"]>): HealthSettings {
  const time = (key: "window" | "cool_down" | "cool_down_max", defaultMs: number) =>
    reader.durationMs([...path, key], health[key], defaultMs, LIMITS.timerMsMax);
  const coolDownMs = time("cool_down", DEFAULTS.healthCoolDownMs);
  const coolDownMaxMs = time("cool_down_max", DEFAULTS.healthCoolDownMaxMs);
  if (coolDownMaxMs < coolDownMs) {
    reader.complain(
      [...path, "cool_down_max" in health ? "cool_down_max" : "cool_down"],
      "cool_down_max must not be shorter than cool_down",
    );
  }
  return {
    failures: health.failures ?? DEFAULTS.healthFailures,
    failurePercent: health.failure_percent ?? DEFAULTS.healthFailurePercent,
    outcomesMin: health.outcomes_min ?? DEFAULTS.healthOutcomesMin,
    windowMs: time("window", DEFAULTS.healthWindowMs),
    coolDownMs,
    coolDownMaxMs,
  };
}

function readCredential(reader: Reader, path: ConfigPath, text: string | undefined): Secret | undefined {
  if (text === undefined) return undefined;
  if (!isFieldValue(text)) reader.refuse(path, "must be visible ASCII in one line, without blanks around it");
  return new Secret(text);
}

/** Headers that describe the connection or the body; the sender of a request owns them (RFC 9110 7.6.1). */
const OWNED_HEADERS = {
  names: new Set(
    "connection content-length content-type expect host http2-settings keep-alive proxy-connection te trailer transfer-encoding upgrade".split(
      " ",
    ),
  ),
  why: "is set by Tollgate and cannot be configured",
};
