/**
 * Who is asking, as far as the network can be believed (docs/failure-model.md row 76): forwarding headers count only
 * when they come from an address that the operator named.
 */
import type { Socket } from "node:net";
import { normalIp, remembered } from "../wire/address.ts";
import { cidrMatcher, forwardedClient } from "../wire/header.ts";
import type { RequestHeaders } from "./headers.ts";

/** Gives the client's address, or undefined when none can be trusted. */
export type ClientAddressOf = (socket: Socket, headers: RequestHeaders) => string | undefined;

/** Makes the function that says whether a connection is from a front that the operator named. */
export function frontMatcher(trustProxy: readonly string[]): (socket: Socket) => boolean {
  const trustsUnix = trustProxy.includes("unix");
  const trusts = cidrMatcher(trustProxy);
  return ({ remoteAddress }) => (remoteAddress === undefined ? trustsUnix : trusts(remoteAddress));
}

/** Of more addresses than these nothing is said. */
const TOLD_MAX = 4;

/** Where fronts are: loopback (RFC 1122, RFC 4291), private (RFC 1918, RFC 4193, RFC 6598) and link-local addresses. */
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
 * Makes the function that names a request's client.
 * @param trustProxy CIDR blocks of the fronts, and `unix` for a front that comes through a unix socket.
 * @param onUnnamedFront called when what is most likely a front says whom it speaks for and is not believed, once for each of the first
 * addresses: with the address as `trust_proxy` would name it.
 */
export function clientAddress(
  trustProxy: readonly string[],
  onUnnamedFront: (peer: string) => void = () => {},
): ClientAddressOf {
  const isFront = frontMatcher(trustProxy);
  const trusts = cidrMatcher(trustProxy);
  const mayBeFront = cidrMatcher(FRONTS_ARE_IN);
  const spelled = remembered(normalIp);
  const told = new Set<string>();
  const tell = ({ destroyed }: Socket, address: string | undefined): void => {
    // A connection that is closed has no address either.
    if (address === undefined ? destroyed : !mayBeFront(address)) return;
    const name = address ?? "unix";
    if (told.has(name)) return;
    told.add(name);
    onUnnamedFront(name);
  };
  return (socket, headers) => {
    const peer = socket.remoteAddress;
    if (!isFront(socket)) {
      const address = peer === undefined ? undefined : spelled(peer);
      if (told.size < TOLD_MAX && headers.has("x-forwarded-for")) tell(socket, address);
      return address;
    }
    // Several headers are one list (RFC 9110 section 5.3); the front's own entry is the last of it.
    const forwarded = headers.all("x-forwarded-for").join(",");
    return forwarded === "" ? undefined : forwardedClient(forwarded, trusts);
  };
}

/** W3C Trace Context, version 00. Anything else is ignored: the trace starts anew here (row 74). */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The caller's trace context when it is well-formed, else undefined. */
export function traceparentOf(headers: RequestHeaders): string | undefined {
  const value = headers.get("traceparent");
  return value !== undefined && !headers.repeats("traceparent") && TRACEPARENT.test(value) ? value : undefined;
}
