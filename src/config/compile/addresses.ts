/**
 * Reads addresses, URLs and address blocks. Each reader returns the value or says what is wrong, without the text
 * itself: a URL may contain a password.
 */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { resolve } from "node:path";
import { Secret } from "../../values/secret.ts";
import type { Address, StoreSettings, TlsSettings } from "../../values/settings.ts";
import { LIMITS } from "../defaults.ts";
import { otherNetwork } from "./network.ts";

export type ParsedText<T> = { readonly value: T } | { readonly wrong: string };

/** `127.0.0.1:8787`, `[::1]:8787`, `localhost:8787` or `unix:PATH`; port 0 lets the system choose. */
export function readAddress(text: string): ParsedText<Address> {
  if (text.startsWith("unix:")) {
    const path = text.slice(5);
    // sun_path of unix(7) holds 108 bytes with its final NUL.
    if (path === "" || Buffer.byteLength(path) > 107) {
      return { wrong: "must be unix: and the path of a socket of at most 107 bytes, such as unix:/run/tollgate.sock" };
    }
    return { value: { kind: "unix", path } };
  }
  const endpoint = readEndpoint(text);
  if (!endpoint) {
    return { wrong: "must be IP:PORT such as 127.0.0.1:8787 or [::1]:8787, localhost:PORT, or unix:PATH" };
  }
  if (isIP(endpoint.host) === 0 && endpoint.host !== "localhost") {
    return {
      wrong: "must have an IP address or localhost before the port, because other names could mean several addresses",
    };
  }
  return { value: { kind: "tcp", ...endpoint } };
}

/** Whether only programs on this machine can reach the address. */
export function isLocal(address: Address): boolean {
  if (address.kind === "unix") return true;
  const { host } = address;
  // A name such as 127.example may begin like a loopback address but lead elsewhere.
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

/** Whether requests to a URL leave this machine unencrypted. */
export function isUnencryptedRemote(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLocal({ kind: "tcp", host: hostOf(hostname), port: 0 });
}

/** A host name of a URL; IPv6 without its brackets. */
function hostOf(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/**
 * Whether two listeners cannot use these addresses at the same time: they are equal, or one means all addresses on the
 * other's port.
 */
export function collide(a: Address, b: Address): boolean {
  if (a.kind === "unix" || b.kind === "unix")
    return a.kind === "unix" && b.kind === "unix" && resolve(a.path) === resolve(b.path);
  if (a.port === 0 || a.port !== b.port) return false;
  const [one, other] = [hostsOf(a.host), hostsOf(b.host)];
  return one.some((host) => other.some((of) => host === of || takesIn(host, of) || takesIn(of, host)));
}

/**
 * Whether a URL leads to a listener of this machine, judged by its text. Names are not resolved. If a listener has all
 * addresses, an address other than loopback may belong to another machine.
 */
export function pointsTo(url: string, listener: Address): boolean {
  if (listener.kind === "unix") return false;
  const { protocol, hostname, port: written } = new URL(url);
  const port = Number(written || (protocol === "https:" ? 443 : 80));
  // A connection to the unspecified address goes to loopback.
  const host = hostOf(hostname)
    .replace(/^0\.0\.0\.0$/, "127.0.0.1")
    .replace(/^::$/, "::1");
  const to: Address = { kind: "tcp", host, port };
  return isLocal(to) ? collide(to, listener) : host === listener.host && port === listener.port;
}

/** `localhost` can be either loopback address. */
function hostsOf(host: string): string[] {
  return host.toLowerCase() === "localhost" ? ["127.0.0.1", "::1"] : [host];
}

/** Whether a host means all addresses of this machine, and `host` is among them. `::` includes those of IPv4. */
function takesIn(everywhere: string, host: string): boolean {
  if (isIPv6(everywhere)) return new URL(`http://[${everywhere}]/`).hostname === "[::]";
  return everywhere === "0.0.0.0" && !isIPv6(host);
}

function readEndpoint(text: string, defaultPort?: number): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?$/.exec(text);
  if (!match) return undefined;
  const [, ipv6, name, portText] = match;
  if (ipv6 !== undefined && !isIPv6(ipv6)) return undefined;
  if (name !== undefined && /^[0-9.]+$/.test(name) && !isIPv4(name)) return undefined;
  const port = portText === undefined ? defaultPort : Number(portText);
  if (port === undefined || port > 65_535) return undefined;
  return { host: (ipv6 ?? name) as string, port };
}

/**
 * A base URL to which paths are appended: http or https, without credentials, query and fragment. The trailing slash is
 * removed.
 */
export function readBaseUrl(text: string): ParsedText<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) {
    return { wrong: "must be an http:// or https:// URL" };
  }
  if (url.username || url.password) return { wrong: "must not contain credentials; put them into api_key or headers" };
  if (url.search || url.hash || /[?#]/.test(text)) return { wrong: "must not have a query or a fragment" };
  // Percent-encoded silently, they would make a path that does not exist. Most are left over from quoting.
  if (/[\s"'`<>\\^{|}]/.test(text)) {
    return { wrong: "must not have spaces, quotes or any of < > \\ ^ { | }; write a space in a path as %20" };
  }
  return { value: url.href.replace(/\/+$/, "") };
}

/** An origin, as in a browser's `Origin` header: without a path. */
export function readOrigin(text: string): ParsedText<string> {
  const url = readBaseUrl(text);
  if ("wrong" in url) return url;
  return new URL(text).origin === url.value ? url : { wrong: "must be an origin such as https://chat.example" };
}

/** `10.0.0.0/8`, `::1/128`, a single address or `unix`. */
export function readAddressBlock(text: string): ParsedText<string> {
  if (text === "unix") return { value: text };
  const [address = "", bits, more] = text.split("/");
  const version = isIP(address);
  const bitsMax = version === 4 ? 32 : 128;
  if (version === 0 || more !== undefined) {
    return { wrong: "must be a CIDR block such as 10.0.0.0/8 or fd00::/8, an address, or unix" };
  }
  if (bits === undefined) return { value: `${address}/${bitsMax}` };
  if (!/^(0|[1-9][0-9]{0,2})$/.test(bits) || Number(bits) > bitsMax) {
    return { wrong: `must have a prefix length from 0 to ${bitsMax} after the slash` };
  }
  const network = otherNetwork(address, Number(bits));
  if (network !== undefined) {
    // The author most likely means this one address, but the whole network would be trusted.
    const meant = `write the single address ${address}, or the whole network ${network}/${bits}`;
    return { wrong: `must not have bits set after its prefix; ${meant}` };
  }
  return { value: text };
}

const STORE_FORMS =
  "must be embedded:DIR, redis://host:port/db, redis-cluster://host:port,host:port or redis-sentinel://host:port,host:port/name, " +
  "each Redis form with rediss instead of redis for TLS, and with user:password@ if needed, in which # is written %23, / %2F and ? %3F";

/** TLS with the CAs that Node knows or that NODE_EXTRA_CA_CERTS adds. */
const ANY_AUTHORITY: TlsSettings = { ca: undefined, identity: undefined, serverName: undefined };

/** Reads `store`. Passwords become secrets at once. Forms that begin with `rediss` use TLS. */
export function readStore(text: string): ParsedText<StoreSettings> {
  if (text.startsWith("embedded:")) {
    const dir = text.slice("embedded:".length);
    return dir === "" ? { wrong: "must name a folder after embedded:" } : { value: { kind: "embedded", dir } };
  }
  const match = /^(rediss?)(|-cluster|-sentinel):\/\/(.+)$/.exec(text);
  if (!match) return { wrong: STORE_FORMS };
  const [, scheme, form, rest] = match as unknown as [string, string, string, string];
  const tls = scheme === "rediss" ? ANY_AUTHORITY : undefined;
  if (form === "") return readSingleRedis(text, tls);
  const credentials = readCredentials(rest);
  if (!credentials) return { wrong: "has credentials that are not percent-encoded as in a URL" };
  const { username, password, after } = credentials;
  const [hosts = "", name, more] = after.split("/");
  const nodes = readNodes(hosts, form === "-sentinel" ? 26_379 : 6_379);
  if (!nodes) {
    return {
      wrong: `must list host:port, separated by commas, at most ${LIMITS.storeNodesMax} and none of them twice`,
    };
  }
  if (form === "-cluster") {
    if (name || more !== undefined) return { wrong: "must end after the hosts: a cluster has no databases" };
    return { value: { kind: "redis-cluster", nodes, tls, username, password } };
  }
  if (!name || more !== undefined || !/^[A-Za-z0-9._-]+$/.test(name)) {
    return { wrong: "must end in / and the name that the sentinels watch" };
  }
  const sentinelsOwn = { sentinelUsername: undefined, sentinelPassword: undefined };
  return { value: { kind: "redis-sentinel", sentinels: nodes, name, tls, username, password, ...sentinelsOwn } };
}

function readSingleRedis(text: string, tls: TlsSettings | undefined): ParsedText<StoreSettings> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url?.hostname) return { wrong: STORE_FORMS };
  if (url.search || url.hash)
    return { wrong: "must not have a query or a fragment; in a password, # is written %23 and ? %3F" };
  if (!/^(\/|\/(0|[1-9][0-9]{0,3}))?$/.test(url.pathname))
    return { wrong: "must end in / and the number of a database" };
  return { value: { kind: "redis", url: new Secret(text), tls } };
}

function readCredentials(
  text: string,
): { username: string | undefined; password: Secret | undefined; after: string } | undefined {
  const end = text.lastIndexOf("@");
  if (end < 0) return { username: undefined, password: undefined, after: text };
  const credentials = text.slice(0, end);
  const colon = credentials.indexOf(":");
  try {
    const username = decodeURIComponent(colon < 0 ? credentials : credentials.slice(0, colon));
    const password = colon < 0 ? "" : decodeURIComponent(credentials.slice(colon + 1));
    return {
      username: username === "" ? undefined : username,
      password: password === "" ? undefined : new Secret(password),
      after: text.slice(end + 1),
    };
  } catch {
    return undefined;
  }
}

function readNodes(text: string, defaultPort: number): { host: string; port: number }[] | undefined {
  const nodes = text.split(",").map((part) => readEndpoint(part, defaultPort));
  if (nodes.length > LIMITS.storeNodesMax || nodes.some((node) => !node || node.port === 0)) return undefined;
  const found = nodes as { host: string; port: number }[];
  return new Set(found.map((node) => `${node.host} ${node.port}`)).size === found.length ? found : undefined;
}
