/**
 * Warnings about a valid configuration that may not do what its author expects. `tollgate check` and the log show them;
 * the gateway starts anyway.
 */
import { X509Certificate } from "node:crypto";
import { type Catalog, groupServes } from "../values/catalog.ts";
import { PROTOCOLS, withoutEndpoint, withVersion } from "../values/protocol.ts";
import type { Settings } from "../values/settings.ts";
import { isUnencryptedRemote } from "./compile/addresses.ts";
import { isUnasked } from "./compile/ports.ts";
import { formatDuration } from "./compile/units.ts";
import { ofPrices } from "./price-warnings.ts";

type Judged = Pick<
  Settings,
  "listen" | "admin" | "trustProxy" | "console" | "operatorOidc" | "drain" | "traces" | "upstreams" | "catalog"
>;

/**
 * @param nowMs milliseconds since the Unix epoch.
 * @returns one sentence per warning: listeners, trusted peers, console, drain and traces, then upstreams, models and
 * prices in the order of the file.
 */
export function warningsOf(settings: Judged, nowMs: number): readonly string[] {
  const { catalog } = settings;
  return [
    ...ofPorts(settings),
    ...ofTrust(settings),
    ...ofConsole(settings),
    ...ofDrain(settings),
    ...ofTraces(settings),
    ...ofUpstreams(settings),
    ...ofCertificates(settings, nowMs),
    ...ofModels(catalog),
    ...ofPrices(catalog),
  ];
}

/** Only a warning: other programs can still use such a port. */
function* ofPorts({ listen, admin }: Judged): Generator<string> {
  for (const [key, address] of Object.entries({ listen, admin })) {
    if (address.kind === "unix" || !isUnasked(address.port)) continue;
    const whom = key === "admin" ? "commands cannot reach the admin API" : "SDKs that use fetch cannot connect";
    yield `${key} has the port ${address.port}, which browsers and fetch block: the console cannot be opened there, and ${whom}. Use another port`;
  }
}

function* ofTrust({ trustProxy, console }: Judged): Generator<string> {
  for (const block of trustProxy) {
    if (!block.endsWith("/0")) continue;
    const account = console?.trustedHeader === undefined ? "" : ", and in console.trusted_header any account";
    yield `trust_proxy has ${block}, which matches every peer: anyone who connects can claim any address in X-Forwarded-For${account}. Use the front's own address`;
  }
}

/** Only a warning: a front may redirect browsers to its https:// address, and links work there. */
function* ofConsole({ console, operatorOidc }: Judged): Generator<string> {
  const urls = { "console.public_url": console?.publicUrl, "console.operator.public_url": operatorOidc?.publicUrl };
  for (const [key, url] of Object.entries(urls)) {
    if (url === undefined || !isUnencryptedRemote(url)) continue;
    yield `${key} is http:// and not this machine: browsers keep the sign-in cookie only over https://, so nobody can sign in there. Use the front's https:// address`;
  }
}

/** Only a warning: the deadline begins after the lame duck time, so any two values work. */
function* ofDrain({ drain: { lameDuckMs, deadlineMs } }: Judged): Generator<string> {
  if (lameDuckMs <= deadlineMs) return;
  const [duck, deadline] = [formatDuration(lameDuckMs), formatDuration(deadlineMs)];
  yield `drain.lame_duck (${duck}) is longer than drain.deadline (${deadline}), which begins after it: new requests are accepted for ${duck}, and then running streams are cut after ${deadline}. The two values may be swapped`;
}

/** The environment variables of OpenTelemetry SDKs hold only the collector's address; the SDKs append the path. */
function* ofTraces({ traces }: Judged): Generator<string> {
  if (traces === undefined) return;
  const { origin, pathname } = new URL(traces.endpoint);
  if (pathname !== "/") return;
  yield `traces.endpoint has no path: spans will go to ${origin}/, but collectors receive them at /v1/traces. Change it to ${origin}/v1/traces`;
}

function* ofUpstreams({ upstreams, catalog }: Judged): Generator<string> {
  const asked = new Set([...catalog.models.values()].flatMap(({ routes }) => routes.map(({ upstream }) => upstream)));
  for (const { name, baseUrl, protocol, tls } of upstreams.values()) {
    if (!asked.has(name)) {
      yield `upstreams.${name} is in no route, so it is never used; add it under models.NAME.routes`;
    }
    if (baseUrl.startsWith("http:") && (tls.ca ?? tls.identity ?? tls.serverName) !== undefined) {
      yield `upstreams.${name}.tls has no effect, because its base_url is http://: everything sent there, including its api_key, can be read on the way. Change it to https://, or remove tls`;
    }
    const url = `${baseUrl}${PROTOCOLS[protocol].upstreamPath}`;
    const bare = withoutEndpoint(baseUrl);
    const whole = withVersion(baseUrl, protocol);
    if (bare === undefined && whole !== undefined) {
      yield `upstreams.${name}.base_url has no version: requests will go to ${url}, but most servers have that path below /v1. If this one does too, change it to ${whole}`;
    }
    if (bare === undefined) continue;
    yield `upstreams.${name}.base_url includes the endpoint: requests will go to ${url}. Change it to ${bare}`;
  }
}

/** Only a warning: a server may not ask for it, and the other upstreams must not wait for its renewal. */
function* ofCertificates({ upstreams }: Judged, nowMs: number): Generator<string> {
  for (const { name, tls } of upstreams.values()) {
    if (tls.identity === undefined) continue;
    const { validToDate } = new X509Certificate(tls.identity.cert);
    if (validToDate.getTime() > nowMs) continue;
    yield `upstreams.${name}.tls.cert_file has a certificate that ended at ${validToDate.toISOString()}: servers that ask for it refuse it. Renew it`;
  }
}

function* ofModels({ models, groups }: Catalog): Generator<string> {
  for (const { name, routes, price } of models.values()) {
    if (![...groups.values()].some((group) => groupServes(group, name))) {
      yield `models.${name} is in no group, so no key can use it; add it under groups.NAME.models`;
    }
    if (price.tools.size > 0 || !routes.some((route) => route.protocol === "responses")) continue;
    yield `models.${name}.price.tools has no tool: hosted tools that clients offer (Codex offers web_search in each request) are left out, and requests that demand one are refused`;
  }
}
