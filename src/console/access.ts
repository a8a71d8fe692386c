/**
 * Who may use the admin listener (DESIGN.md section 4; reliability row 42). With an admin token: whoever shows it.
 * Without one: only a peer on this machine that speaks for itself, so neither a local proxy's clients nor a web page
 * open in the operator's browser (cross-site request, rebound name) may.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Secret } from "../values/secret.ts";
import { Refusal } from "./refusal.ts";

/** What is known of the one who asks. */
export interface Peer {
  /** The socket's remote address. Undefined also for a TCP peer that has just gone, so it proves nothing. */
  readonly address: string | undefined;
  /** Whether the listener is a unix socket, whose file permissions decide who connects. */
  readonly unix: boolean;
  readonly headers: IncomingHttpHeaders;
}

/** Headers by which a proxy says that it asks for somebody else. */
const FORWARDING_HEADERS = ["forwarded", "x-forwarded-for", "x-real-ip", "via"] as const;

const LOOPBACK_ADDRESS = /^(?:::1|(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/;
const LOOPBACK_HOST = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i;

/** Throws a Refusal unless the peer may read and change everything. */
export type AccessCheck = (peer: Peer) => void;

/**
 * Makes the check for the admin API (`strict`) and the one for metrics, which a scraper on this machine reads without a
 * token.
 */
export function makeAccess(adminToken: Secret | undefined): { admin: AccessCheck; metrics: AccessCheck } {
  const wanted = adminToken === undefined ? undefined : digest(adminToken.reveal());
  const admin: AccessCheck = (peer) => {
    if (wanted !== undefined) assertToken(wanted, peer.headers.authorization);
    else assertOwnMachine(peer);
  };
  const metrics: AccessCheck = (peer) => {
    if (!isLocal(peer)) admin(peer);
  };
  return { admin, metrics };
}

function assertToken(wanted: Buffer, authorization: string | undefined): void {
  const shown = /^Bearer +([!-~]+)$/i.exec(authorization ?? "")?.[1];
  // Digests have one length, so that the comparison tells nothing of the token's.
  if (shown !== undefined && timingSafeEqual(digest(shown), wanted)) return;
  throw new Refusal(
    401,
    shown === undefined ? "missing_token" : "wrong_token",
    shown === undefined ? "The admin API needs the admin token." : "That is not the admin token of this gateway.",
    "Send `authorization: Bearer TOKEN`; TOKEN is admin_token of the configuration or the file admin-token in the data folder.",
    { "www-authenticate": 'Bearer realm="tollgate-admin"' },
  );
}

function assertOwnMachine(peer: Peer): void {
  const { headers } = peer;
  const fromPage = headers.origin !== undefined || (headers["sec-fetch-site"] ?? "none") !== "none";
  const named = peer.unix || LOOPBACK_HOST.test(headers.host ?? "");
  if (isLocal(peer) && named && !fromPage) return;
  throw new Refusal(
    403,
    "admin_token_required",
    "Without an admin token the admin API answers only programs on the gateway's own machine, under a loopback address.",
    "Set admin_token in the configuration and send it as `authorization: Bearer TOKEN`.",
  );
}

/** Whether the peer is on this machine and asks for itself. */
function isLocal(peer: Peer): boolean {
  if (FORWARDING_HEADERS.some((name) => peer.headers[name] !== undefined)) return false;
  return peer.unix || LOOPBACK_ADDRESS.test(peer.address ?? "");
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
