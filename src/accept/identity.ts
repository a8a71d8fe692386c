/**
 * What a front says about a request: its client's address, its id and its trace, as far as they can be trusted
 * (docs/failure-model.md row 76). Address and id count only when they come from an address in `trust_proxy`.
 */
import type { Socket } from "node:net";
import { normalIp, remembered } from "../wire/address.ts";
import { cidrMatcher, forwardedClient } from "../wire/header.ts";
import type { RequestHeaders } from "./headers.ts";

/** Returns the client's address, or undefined if none can be trusted. */
export type ClientAddressOf = (socket: Socket, headers: RequestHeaders) => string | undefined;

/** Makes the function that says whether a connection comes from a front in `trust_proxy`. */
export function frontMatcher(trustProxy: readonly string[]): (socket: Socket) => boolean {
  const trustsUnix = trustProxy.includes("unix");
  const trusts = cidrMatcher(trustProxy);
  return ({ remoteAddress }) => (remoteAddress === undefined ? trustsUnix : trusts(remoteAddress));
}

/** At most this many unnamed fronts are reported. */
const REPORTED_MAX = 4;

/**
 * Addresses that fronts usually have: loopback (RFC 1122, RFC 4291), private (RFC 1918, RFC 4193, RFC 6598) and
 * link-local.
 */
const FRONTS_ARE_IN = [
  "127.0.0.0/8",
  "::1/128",
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "fc00::/7",
  "fe80::/10",
];

/**
 * Makes the function that returns a request's client address.
 * @param trustProxy CIDR blocks of the fronts, and `unix` for a front that connects through a unix socket.
 * @param onUnnamedFront called if a peer that is probably a front sends X-Forwarded-For and is not in `trust_proxy`.
 *   Gets the peer's address in the notation of `trust_proxy`; called once for each address, for the first few only.
 */
export function clientAddress(
  trustProxy: readonly string[],
  onUnnamedFront: (peer: string) => void = () => {},
): ClientAddressOf {
  const isFront = frontMatcher(trustProxy);
  const trusts = cidrMatcher(trustProxy);
  const mayBeFront = cidrMatcher(FRONTS_ARE_IN);
  const spelled = remembered(normalIp);
  const reported = new Set<string>();
  const report = ({ destroyed }: Socket, address: string | undefined): void => {
    // The address is also undefined if the connection is closed.
    if (address === undefined ? destroyed : !mayBeFront(address)) return;
    const name = address ?? "unix";
    if (reported.has(name)) return;
    reported.add(name);
    onUnnamedFront(name);
  };
  return (socket, headers) => {
    const peer = socket.remoteAddress;
    if (!isFront(socket)) {
      const address = peer === undefined ? undefined : spelled(peer);
      if (reported.size < REPORTED_MAX && headers.has("x-forwarded-for")) report(socket, address);
      return address;
    }
    // Several headers are one list (RFC 9110 section 5.3); the front's own entry is the last one.
    const forwarded = headers.all("x-forwarded-for").join(",");
    return forwarded === "" ? undefined : forwardedClient(forwarded, trusts);
  };
}

/** W3C Trace Context, version 00. Anything else is ignored, and a new trace starts here (row 74). */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The caller's trace context if it is well-formed, else undefined. */
export function traceparentOf(headers: RequestHeaders): string | undefined {
  const value = headers.get("traceparent");
  return value !== undefined && !headers.repeats("traceparent") && TRACEPARENT.test(value) ? value : undefined;
}

/**
 * Hex digits and dashes, as nginx (32 digits) and Envoy (a UUID) make their ids. Other values may be a client's text,
 * which must not reach the log.
 */
const FRONT_REQUEST = /^[0-9A-Fa-f-]{16,64}$/;

/**
 * The id that a front has given to the request, for log lines only; undefined if there is none of this form.
 * @param headers of a request from a front in `trust_proxy`.
 */
export function frontRequestOf(headers: RequestHeaders): string | undefined {
  const value = headers.get("x-request-id");
  return value !== undefined && !headers.repeats("x-request-id") && FRONT_REQUEST.test(value) ? value : undefined;
}
