/**
 * Sessions: a sealed cookie names a record in the store, and the session ends when the record does. The cookie is
 * worthless without the record, and the record without the cookie.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { SignInOwner, SignInPlace, SignInRecord, SignIns } from "../../store/sign-ins.ts";
import type { RandomBytes } from "../../values/key.ts";
import type { Clock } from "../../values/time.ts";

/** Seals values that a browser carries; `open` returns undefined for a value that was not sealed in this context. */
export interface Sealer {
  seal(content: Uint8Array, context: string): string;
  open(envelope: string, context: string): Uint8Array | undefined;
}

/** The sign-in methods. */
export type SignInMethod = "link" | "passkey" | "oidc" | "front" | "token";

export interface Session {
  readonly owner: SignInOwner;
  /** The id of its record; not a secret. */
  readonly id: string;
  readonly way: SignInMethod;
  /** Milliseconds since the epoch. */
  readonly endsAtMs: number;
}

/** Where a session was started, so that its owner can recognize it. */
interface SignInFrom {
  readonly from: string;
  /** The browser's user agent; it can be any text. */
  readonly agent: string;
}

/** A session as its owner sees it in a list. */
interface ListedSession extends SignInFrom {
  readonly id: string;
  readonly way: SignInMethod;
  readonly begunAtMs: number;
  readonly endsAtMs: number;
}

interface SessionParts {
  readonly store: Pick<SignIns, "keepSignIn" | "findSignIn" | "dropSignIn">;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** How long a session lasts. */
  readonly lastsMs: number;
  /** The name of the cookie. Different for each listener, because cookies are shared between ports. */
  readonly cookieName: string;
}

const SECRET_BYTES = 24;
/** Maximum length of a stored user agent. */
const AGENT_CHARS_MAX = 200;
const NOWHERE: SignInFrom = { from: "", agent: "" };
const CONTEXT = "console session";

export class Sessions {
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /**
   * Starts a session.
   * @returns the `set-cookie` header that signs the browser in
   * @throws StoreError if the store does not answer; then nobody is signed in
   */
  async begin(owner: SignInOwner, way: SignInMethod, place?: SignInFrom): Promise<string> {
    const cookie = await this.#begin(owner, way, place);
    assert.ok(cookie !== undefined, "a session without a condition was not kept");
    return cookie;
  }

  /**
   * The same, on condition that a record of the owner still exists; undefined if it was removed in the meantime, and
   * nobody is signed in.
   * @throws StoreError
   */
  beginBy(by: SignInPlace, owner: SignInOwner, way: SignInMethod, place: SignInFrom): Promise<string | undefined> {
    return this.#begin(owner, way, place, by);
  }

  async #begin(
    owner: SignInOwner,
    way: SignInMethod,
    { from, agent } = NOWHERE,
    by?: SignInPlace,
  ): Promise<string | undefined> {
    const { store, sealer, clock, random, lastsMs, cookieName } = this.#parts;
    const secret = Buffer.from(random(SECRET_BYTES)).toString("base64url");
    const answer = await store.keepSignIn(owner, {
      kind: "session",
      id: digestOf(secret),
      data: JSON.stringify({ way, from, agent: agent.slice(0, AGENT_CHARS_MAX).toWellFormed() }),
      lastsMs,
      by,
    });
    if (answer !== "kept") return undefined;
    const until = clock.wallMs() + lastsMs;
    const sealed = sealer.seal(Buffer.from(JSON.stringify({ owner, secret, way, until })), CONTEXT);
    return cookie(cookieName, sealed, Math.floor(lastsMs / 1_000));
  }

  /** The session that a cookie names; undefined if there is none, or it has ended. @throws StoreError */
  async find(cookies: Readonly<Record<string, string | undefined>>): Promise<Session | undefined> {
    const named = this.named(cookies);
    return named && (await this.isRunning(named)) ? named : undefined;
  }

  /** The session that a cookie names. The store is not asked whether it is still running, so it proves nothing yet. */
  named(cookies: Readonly<Record<string, string | undefined>>): Session | undefined {
    const { sealer, clock, cookieName } = this.#parts;
    const opened = sealer.open(cookies[cookieName] ?? "", CONTEXT);
    if (opened === undefined) return undefined;
    const { owner, secret, way, until } = JSON.parse(Buffer.from(opened).toString()) as {
      readonly owner: SignInOwner;
      readonly secret: string;
      readonly way: SignInMethod;
      readonly until: number;
    };
    return until <= clock.wallMs() ? undefined : { owner, id: digestOf(secret), way, endsAtMs: until };
  }

  /** Whether the session is still running. @throws StoreError */
  async isRunning({ owner, id }: Session): Promise<boolean> {
    return (await this.#parts.store.findSignIn(owner, "session", id)) !== undefined;
  }

  /** Ends a session. @returns the `set-cookie` header that removes the cookie @throws StoreError */
  async end({ owner, id }: Session): Promise<string> {
    await this.#parts.store.dropSignIn(owner, "session", id);
    return cookie(this.#parts.cookieName, "", 0);
  }
}

/** The sessions among an owner's records, newest first. */
export function sessionsOf(records: readonly SignInRecord[]): readonly ListedSession[] {
  const own = records.filter(({ kind }) => kind === "session").toReversed();
  return own.map(({ id, data, createdAtMs, expiresAtMs = createdAtMs }) => {
    const { way, from = "", agent = "" } = JSON.parse(data) as Partial<SignInFrom> & { readonly way: SignInMethod };
    return { id, way, from, agent, begunAtMs: createdAtMs, endsAtMs: expiresAtMs };
  });
}

/** The form in which a secret is stored. */
export function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}

/** RFC 6265bis: the prefix restricts the cookie to this host and to encrypted connections, except on loopback. */
function cookie(name: string, value: string, maxAgeS: number): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; Secure; SameSite=Lax`;
}
