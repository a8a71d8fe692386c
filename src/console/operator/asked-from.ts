/** The address of an operator, for the audit and for the limits per address. */
import { cidrMatcher, forwardedClient } from "../../wire/header.ts";
import type { AppRequest } from "../app.ts";

/** For a program that connects over a unix socket directly. */
const UNIX = "unix";

/** Returns an address, or `unix`. */
export type AskedFrom = (request: Pick<AppRequest, "socket" | "headers">) => string;

/**
 * Makes the function that determines the address. As at the clients' listener, only trusted fronts may name another
 * address. Unlike there, if a front names no client, the address of the front itself is used: the command line runs on
 * the gateway's machine, where fronts run too.
 * @param trustProxy CIDR blocks of the fronts, and `unix` for one that connects through a unix socket
 */
export function askedFrom(trustProxy: readonly string[]): AskedFrom {
  const trustsUnix = trustProxy.includes("unix");
  const trusts = cidrMatcher(trustProxy);
  return ({ socket: { remoteAddress: peer }, headers }) => {
    const isFront = peer === undefined ? trustsUnix : trusts(peer);
    // Node joins several of these headers into one list.
    const forwarded = headers["x-forwarded-for"];
    const client = isFront && typeof forwarded === "string" ? forwardedClient(forwarded, trusts) : undefined;
    return client ?? peer ?? UNIX;
  };
}
