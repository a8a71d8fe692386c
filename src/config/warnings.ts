/** What a good configuration may surprise its users with: `tollgate check` and the log say it, and the gateway starts all the same. */
import { type Catalog, groupServes } from "../values/catalog.ts";
import { PROTOCOLS, withoutEndpoint, withVersion } from "../values/protocol.ts";
import type { Settings } from "../values/settings.ts";
import { isPlainElsewhere } from "./compile/addresses.ts";
import { isUnasked } from "./compile/ports.ts";
import { formatDuration } from "./compile/units.ts";
import { ofPrices } from "./price-warnings.ts";

type Judged = Pick<
  Settings,
  "listen" | "admin" | "trustProxy" | "console" | "operatorOidc" | "drain" | "traces" | "upstreams" | "catalog"
>;

/** @returns one sentence for each thing: of where it listens, of whom is believed, of the console, of a drain, of traces, then of upstreams, of models and of their prices, these in the order of the file. */
export function warningsOf(settings: Judged): readonly string[] {
  const { catalog } = settings;
  return [
    ...ofPorts(settings),
    ...ofTrust(settings),
    ...ofConsole(settings),
    ...ofDrain(settings),
    ...ofTraces(settings),
    ...ofUpstreams(settings),
    ...ofModels(catalog),
    ...ofPrices(catalog),
  ];
}

/** No problem: other programs ask there all the same. */
function* ofPorts({ listen, admin }: Judged): Generator<string> {
  for (const [key, address] of Object.entries({ listen, admin })) {
    if (address.kind === "unix" || !isUnasked(address.port)) continue;
    const whom = key === "admin" ? "commands cannot ask" : "SDKs that ask by fetch do not get in";
    yield `${key} has the port ${address.port}, at which browsers and fetch ask nobody: no console can be opened there, and ${whom}. Take another one`;
  }
}

function* ofTrust({ trustProxy, console }: Judged): Generator<string> {
  for (const block of trustProxy) {
    if (!block.endsWith("/0")) continue;
    const account = console?.trustedHeader === undefined ? "" : ", and in console.trusted_header any account";
    yield `trust_proxy has ${block}, which is everybody: whoever connects may claim any address in X-Forwarded-For${account}. Name the front's own address`;
  }
}

/** No problem: a front may send browsers on to its https:// address, and what goes by links alone works there. */
function* ofConsole({ console, operatorOidc }: Judged): Generator<string> {
  const urls = { "console.public_url": console?.publicUrl, "console.operator.public_url": operatorOidc?.publicUrl };
  for (const [key, url] of Object.entries(urls)) {
    if (url === undefined || !isPlainElsewhere(url)) continue;
    yield `${key} is http:// and not this machine: browsers keep the cookie of a sign-in over https:// only, so nobody can sign in there. Name the front's https:// address`;
  }
}

/** The second begins when the first is over, so that any two of them work. */
function* ofDrain({ drain: { lameDuckMs, deadlineMs } }: Judged): Generator<string> {
  if (lameDuckMs <= deadlineMs) return;
  const [duck, deadline] = [formatDuration(lameDuckMs), formatDuration(deadlineMs)];
  yield `drain.lame_duck (${duck}) is longer than drain.deadline (${deadline}), which begins after it: new requests are taken for ${duck}, and then what streams is cut after ${deadline}. They may be the wrong way round`;
}

/** The variables of OpenTelemetry's SDKs have the collector's address alone, and append the path themselves. */
function* ofTraces({ traces }: Judged): Generator<string> {
  if (traces === undefined) return;
  const { origin, pathname } = new URL(traces.endpoint);
  if (pathname !== "/") return;
  yield `traces.endpoint has no path: spans will go to ${origin}/, and collectors take them at /v1/traces. Make it ${origin}/v1/traces`;
}

function* ofUpstreams({ upstreams, catalog }: Judged): Generator<string> {
  const asked = new Set([...catalog.models.values()].flatMap(({ routes }) => routes.map(({ upstream }) => upstream)));
  for (const { name, baseUrl, protocol, tls } of upstreams.values()) {
    if (!asked.has(name)) {
      yield `upstreams.${name} is in no route: it is never asked; name it under models.NAME.routes`;
    }
    if (baseUrl.startsWith("http:") && (tls.ca ?? tls.identity ?? tls.serverName) !== undefined) {
      yield `upstreams.${name}.tls has no effect, since its base_url is http://: what goes there, its api_key included, can be read on the way. Make it https://, or take tls out`;
    }
    const url = `${baseUrl}${PROTOCOLS[protocol].upstreamPath}`;
    const bare = withoutEndpoint(baseUrl);
    const whole = withVersion(baseUrl, protocol);
    if (bare === undefined && whole !== undefined) {
      yield `upstreams.${name}.base_url has no version in it: requests will go to ${url}, and most servers have that below /v1. If this one does, make it ${whole}`;
    }
    if (bare === undefined) continue;
    yield `upstreams.${name}.base_url has the endpoint in it: requests will go to ${url}. Make it ${bare}`;
  }
}

function* ofModels({ models, groups }: Catalog): Generator<string> {
  for (const { name, routes, price } of models.values()) {
    if (![...groups.values()].some((group) => groupServes(group, name))) {
      yield `models.${name} is in no group: no key can use it; name it under groups.NAME.models`;
    }
    if (price.tools.size > 0 || !routes.some((route) => route.protocol === "responses")) continue;
    yield `models.${name}.price.tools has no tool: hosted tools that clients offer (Codex: web_search, in each request) are left out, and refused where they are demanded`;
  }
}
