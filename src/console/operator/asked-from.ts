/** From where an operator asks, for the audit and for what an address may try. */
import { cidrMatcher, forwardedClient } from "../../wire/header.ts";
import type { AppRequest } from "../app.ts";

/** For a program that connects over a unix socket and for nobody else. */
const UNIX = "unix";

/** Gives an address, or `unix`. */
export type AskedFrom = (request: Pick<AppRequest, "socket" | "headers">) => string;

/**
 * Makes the function that says so: as at the clients' address, a front that is trusted is believed whom it speaks for, and nobody
 * else is. Unlike there one that names nobody is the one who asks: the command line runs beside the gateway, where fronts are.
 * @param trustProxy CIDR blocks of the fronts, and `unix` for one that comes through a unix socket.
 */
export function askedFrom(trustProxy: readonly string[]): AskedFrom {
  const trustsUnix = trustProxy.includes("unix");
  const trusts = cidrMatcher(trustProxy);
  return ({ socket: { remoteAddress: peer }, headers }) => {
    const isFront = peer === undefined ? trustsUnix : trusts(peer);
    // Several headers are one list here.
    const forwarded = headers["x-forwarded-for"];
    const client = isFront && typeof forwarded === "string" ? forwardedClient(forwarded, trusts) : undefined;
    return client ?? peer ?? UNIX;
  };
}
