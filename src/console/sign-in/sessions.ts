/**
 * Who has signed in: a sealed cookie names a session that the store has, so that it ends when its record does. What the
 * cookie holds is worth nothing without the record, and the record nothing without the cookie.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { SignInOwner, SignInPlace, SignInRecord, SignIns } from "../../store/sign-ins.ts";
import type { RandomBytes } from "../../values/key.ts";
import type { Clock } from "../../values/time.ts";

/** Seals what a browser carries; `open` gives undefined for what was not sealed in this context. */
export interface Sealer {
  seal(content: Uint8Array, context: string): string;
  open(envelope: string, context: string): Uint8Array | undefined;
}

/** By what somebody has shown who they are. */
export type SignInWay = "link" | "passkey" | "oidc" | "front" | "token";

export interface Session {
  readonly owner: SignInOwner;
  /** Of its record: no secret. */
  readonly id: string;
  readonly way: SignInWay;
  /** Milliseconds since the epoch. */
  readonly endsAtMs: number;
}

/** Where a session was begun, for its owner to know it by. */
interface SignInFrom {
  readonly from: string;
  /** What the browser calls itself; what it likes. */
  readonly agent: string;
}

/** A session as its owner sees it in a list. */
interface ListedSession extends SignInFrom {
  readonly id: string;
  readonly way: SignInWay;
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
  /** Of the cookie: one for each listener, since ports share cookies. */
  readonly cookieName: string;
}

const SECRET_BYTES = 24;
/** Of what a browser calls itself. */
const AGENT_CHARS_MAX = 200;
const NOWHERE: SignInFrom = { from: "", agent: "" };
const CONTEXT = "console session";

export class Sessions {
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /**
   * Begins a session.
   * @returns the `set-cookie` header that lets a browser in.
   * @throws StoreError when the store does not answer; then nobody is signed in.
   */
  async begin(owner: SignInOwner, way: SignInWay, place?: SignInFrom): Promise<string> {
    const cookie = await this.#begin(owner, way, place);
    assert.ok(cookie !== undefined, "a session was asked to be kept without a condition");
    return cookie;
  }

  /** The same by a record of the owner; undefined where it was removed meanwhile, and nobody is signed in. @throws StoreError */
  beginBy(by: SignInPlace, owner: SignInOwner, way: SignInWay, place: SignInFrom): Promise<string | undefined> {
    return this.#begin(owner, way, place, by);
  }

  async #begin(
    owner: SignInOwner,
    way: SignInWay,
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

  /** The session that a cookie names; undefined when there is none, or it is over. @throws StoreError */
  async find(cookies: Readonly<Record<string, string | undefined>>): Promise<Session | undefined> {
    const named = this.named(cookies);
    return named && (await this.isRunning(named)) ? named : undefined;
  }

  /** The session that a cookie names, before the store has been asked whether it still runs: it proves nothing yet. */
  named(cookies: Readonly<Record<string, string | undefined>>): Session | undefined {
    const { sealer, clock, cookieName } = this.#parts;
    const opened = sealer.open(cookies[cookieName] ?? "", CONTEXT);
    if (opened === undefined) return undefined;
    const { owner, secret, way, until } = JSON.parse(Buffer.from(opened).toString()) as {
      readonly owner: SignInOwner;
      readonly secret: string;
      readonly way: SignInWay;
      readonly until: number;
    };
    return until <= clock.wallMs() ? undefined : { owner, id: digestOf(secret), way, endsAtMs: until };
  }

  /** Whether nobody has ended it. @throws StoreError */
  async isRunning({ owner, id }: Session): Promise<boolean> {
    return (await this.#parts.store.findSignIn(owner, "session", id)) !== undefined;
  }

  /** Ends a session. @returns the `set-cookie` header that takes the cookie away. @throws StoreError */
  async end({ owner, id }: Session): Promise<string> {
    await this.#parts.store.dropSignIn(owner, "session", id);
    return cookie(this.#parts.cookieName, "", 0);
  }
}

/** The sessions among what an owner has, the newest first. */
export function sessionsOf(records: readonly SignInRecord[]): readonly ListedSession[] {
  const own = records.filter(({ kind }) => kind === "session").toReversed();
  return own.map(({ id, data, createdAtMs, expiresAtMs = createdAtMs }) => {
    const { way, from = "", agent = "" } = JSON.parse(data) as Partial<SignInFrom> & { readonly way: SignInWay };
    return { id, way, from, agent, begunAtMs: createdAtMs, endsAtMs: expiresAtMs };
  });
}

/** What a secret is kept as. */
export function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}

/** RFC 6265bis: the prefix holds it to this host and to encrypted connections, loopback aside. */
function cookie(name: string, value: string, maxAgeS: number): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; Secure; SameSite=Lax`;
}
