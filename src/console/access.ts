/**
 * Who may use the admin listener (docs/failure-model.md row 42). If an admin token is configured: every peer that sends
 * it. Otherwise: only a program on this machine that sends its own requests. This keeps out the clients of a local
 * proxy, and web pages in the operator's browser (cross-site requests, DNS rebinding).
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Secret } from "../values/secret.ts";
import { addressBucket } from "../wire/address.ts";
import type { GuessBudget } from "./guess-budget.ts";
import { AdminRefusal } from "./refusal.ts";

/** What is known about the caller. */
interface Peer {
  /** The socket's remote address. Also undefined for a TCP peer that has just disconnected, so it proves nothing. */
  readonly address: string | undefined;
  /** Whether the listener is a unix socket, whose file permissions decide who can connect. */
  readonly unix: boolean;
  readonly headers: IncomingHttpHeaders;
}

/** Headers by which a proxy shows that it forwards a request. */
const FORWARDING_HEADERS = ["forwarded", "x-forwarded-for", "x-real-ip", "via"] as const;

const LOOPBACK_ADDRESS = /^(?:::1|(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/;
const LOOPBACK_HOST = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i;

/** Throws an AdminRefusal unless the peer may read and change everything. */
export type AccessCheck = (peer: Peer) => void;

/** Why access was refused: the refusal's code. */
export type AccessReason =
  | "missing_token"
  | "wrong_token"
  | "too_many_wrong_tokens"
  | "admin_token_required"
  | "signed_out"
  | "other_site";

/** Hex digits of the token's SHA-256 by which audit lines distinguish tokens. */
const FINGERPRINT_CHARS = 8;

/** How wrong tokens are counted and reported. */
interface TokenGuesses {
  readonly budget: GuessBudget;
  /** Called with an address, or an IPv6 network, that has sent too many wrong tokens. */
  readonly onTooMany: (from: string) => void;
}

export interface Access {
  readonly admin: AccessCheck;
  /** For the metrics page. A scraper on this machine that uses a loopback name needs no token. */
  readonly metrics: AccessCheck;
  /** The caller in audit lines: `token:` and the beginning of its digest, or `local` if no token is required. */
  readonly who: string;
  /** Throws an AdminRefusal unless this is the token. For a token that was typed into a browser. */
  readonly signIn: (peer: Peer, token: string) => void;
  /** SHA-256 of the token, to which sessions are bound; undefined without a token. */
  readonly digest: string | undefined;
}

/**
 * Makes the checks. The correct token is always accepted, even from an address with too many failures. Otherwise anyone
 * who can connect, and every program on this machine, could lock the operator out. The token is protected by its length
 * (at least 16 characters), not by the limit.
 * @param guesses counts wrong tokens by address; above the limit, each wrong token gets 429 and the connection is
 *   closed, so that a guess costs a connection. A unix socket has no address and no such limit: its file permissions
 *   decide who can connect.
 */
export function makeAccess(adminToken: Secret | undefined, guesses?: TokenGuesses): Access {
  const wanted = adminToken === undefined ? undefined : digest(adminToken.reveal());
  const admin: AccessCheck = (peer) => {
    if (wanted !== undefined) assertToken(wanted, peer, bearerOf(peer), guesses);
    else assertOwnMachine(peer);
  };
  const metrics: AccessCheck = (peer) => {
    if (!isOwnMachine(peer)) admin(peer);
  };
  const who = wanted === undefined ? "local" : `token:${wanted.toString("hex").slice(0, FINGERPRINT_CHARS)}`;
  const signIn = (peer: Peer, token: string) => {
    if (wanted === undefined) throw noToken();
    assertToken(wanted, peer, token, guesses, TYPE_IT);
  };
  return { admin, metrics, who, signIn, digest: wanted?.toString("base64url") };
}

const WHERE_IT_IS = "admin_token of the configuration or the file admin-token in the data folder";
const SEND_IT = `Send \`authorization: Bearer TOKEN\`; TOKEN is ${WHERE_IT_IS}.`;
/** Not SEND_IT, because a header does not help here: this request starts a session, which is for browsers. */
const TYPE_IT = `It is ${WHERE_IT_IS}. A program needs no session: it sends the token with each request, as \`authorization: Bearer TOKEN\`.`;

const bearerOf = ({ headers }: Peer) => /^Bearer +([!-~]+)$/i.exec(headers.authorization ?? "")?.[1];

function assertToken(
  wanted: Buffer,
  { unix, address }: Peer,
  shown: string | undefined,
  guesses: TokenGuesses | undefined,
  remedy = SEND_IT,
): void {
  // Digests have the same length, so the comparison does not reveal the length of the token.
  if (shown !== undefined && timingSafeEqual(digest(shown), wanted)) return;
  // A request without a token does not count as a guess.
  const guesser = shown === undefined || unix || address === undefined ? undefined : addressBucket(address);
  const waitMs = guesser === undefined ? 0 : (guesses?.budget.waitMs(guesser) ?? 0);
  if (waitMs > 0) throw tooManyGuesses(waitMs);
  if (guesser !== undefined && guesses?.budget.failed(guesser)) guesses.onTooMany(guesser);
  throw new AdminRefusal(
    401,
    shown === undefined ? "missing_token" : "wrong_token",
    shown === undefined ? "The admin API needs the admin token." : "That is not the admin token of this gateway.",
    remedy,
    { "www-authenticate": 'Bearer realm="tollgate-admin"' },
  );
}

function tooManyGuesses(waitMs: number): AdminRefusal {
  const seconds = Math.ceil(waitMs / 1_000);
  return new AdminRefusal(
    429,
    "too_many_wrong_tokens",
    "That is not the admin token of this gateway, and too many wrong ones came from this address.",
    "Send the right token; it is accepted at any time.",
    { "retry-after": String(seconds), connection: "close" },
  );
}

/** For a browser: it needs a token whatever its address is. */
function noToken(): AdminRefusal {
  return new AdminRefusal(
    403,
    "admin_token_required",
    "This gateway has no admin token, and browsers cannot sign in without one.",
    "Set admin_token in the configuration, restart the gateway, and sign in with it.",
  );
}

function assertOwnMachine(peer: Peer): void {
  if (isOwnMachine(peer)) return;
  throw new AdminRefusal(
    403,
    "admin_token_required",
    "Without an admin token the admin API answers only programs on the gateway's own machine, under a loopback address.",
    "Set admin_token in the configuration and send it as `authorization: Bearer TOKEN`.",
  );
}

/** Whether the peer is a program on this machine that sends its own request to a loopback name. */
function isOwnMachine({ headers, unix, address }: Peer): boolean {
  if (FORWARDING_HEADERS.some((name) => headers[name] !== undefined)) return false;
  if (headers.origin !== undefined || (headers["sec-fetch-site"] ?? "none") !== "none") return false;
  return unix || (LOOPBACK_ADDRESS.test(address ?? "") && LOOPBACK_HOST.test(headers.host ?? ""));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
