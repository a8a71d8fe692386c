/** One upstream of the configuration: converts units and fills in defaults. */
import { mistakenFor } from "../../values/members/shape.ts";
import { MEMBERS, type PassedMembers } from "../../values/members.ts";
import { PROTOCOLS, type Protocol } from "../../values/protocol.ts";
import { Secret } from "../../values/secret.ts";
import type { HealthSettings, QueueSettings, UpstreamSettings } from "../../values/settings.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import type { Sources } from "../expand.ts";
import type { ConfigPath } from "../problems.ts";
import { readBaseUrl } from "./addresses.ts";
import { isFieldValue, readHeaderValues } from "./headers.ts";
import type { LooseUpstream, Reader } from "./reader.ts";
import { readTls } from "./tls.ts";

/** Reads one entry of `upstreams`. Its PEM files are read here, so that a reload notices when they change. */
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
  if (upstream.stateful && upstream.protocol !== "responses") {
    reader.complain(
      [...path, "stateful"],
      '"stateful" is only for upstreams of the protocol responses: no other protocol stores replies',
    );
  }
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
  if (!isFieldValue(text)) reader.refuse(path, "must be visible ASCII in one line, without spaces before or after it");
  return new Secret(text);
}

/** Headers that describe the connection or the body. The sender of a request sets them (RFC 9110 7.6.1). */
const OWNED_HEADERS = {
  names: new Set(
    "connection content-length content-type expect host http2-settings keep-alive proxy-connection te trailer transfer-encoding upgrade".split(
      " ",
    ),
  ),
  why: "is set by Tollgate and cannot be configured",
};

/* Members that no protocol lists but that an upstream gets. */

/**
 * Reads `unknown_members` and `pass_members`. Refuses a name that is listed, or that servers may read as a listed one.
 */
export function readPassedMembers(reader: Reader, path: ConfigPath, upstream: LooseUpstream): PassedMembers {
  const names = new Set<string>();
  for (const [index, name] of (upstream.pass_members ?? []).entries()) {
    if (name === undefined) continue;
    const why = refusedBecause(name, upstream.protocol ?? "chat");
    if (why !== undefined) reader.refuse([...path, "pass_members", index], why);
    names.add(name);
  }
  return { all: upstream.unknown_members === "pass", names };
}

function refusedBecause(path: string, protocol: Protocol): string | undefined {
  const names = path.split(".");
  let shape = MEMBERS[protocol];
  for (const [index, name] of names.entries()) {
    const meaning = shape.meanings.get(name);
    const known = mistakenFor(name, shape);
    if (known !== undefined) return `must not be a name that servers read as "${known}"`;
    if (index < names.length - 1) {
      const inner = shape.inside.get(name);
      if (!inner) return `must not name members inside "${name}": those are not checked`;
      shape = inner;
    } else if (meaning !== undefined && meaning !== "envelope") {
      return REASONS[meaning](name, protocol);
    }
  }
  return undefined;
}

const REASONS = {
  plain: () => "must not be a listed member, because that is passed anyway",
  tier: () => "must be a member that no protocol lists; this one needs a price under price.tiers of the model",
  option: (name: string) =>
    `must be a member that no protocol lists; this one needs a price: price.options.${name} of the model, "0" allows it`,
  limit: (_: string, protocol: Protocol) =>
    `must not be an output limit under another name than ${PROTOCOLS[protocol].limitFields.join(" or ")}`,
  state: () => "must not refer to data that a server keeps: it belongs to the credential, not to the client's account",
} as const;
