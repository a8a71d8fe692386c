/**
 * What lets somebody into the console: sign-in links that wait for their use, passkeys, running sessions; and challenges that
 * were answered. Kept beside the account that it opens, or for the operator of the gateway, who has none.
 */
import type { AccountTag } from "../values/key.ts";

/** Whose record it is: an account's tag, or the operator of the gateway. */
export type SignInOwner = AccountTag | "operator";

/** `spent`: a challenge that was answered, which is not to be answered twice. */
export type SignInKind = "link" | "passkey" | "session" | "spent";

/**
 * Of a kind and an owner. One more takes the place of the oldest of links and sessions. It is refused for passkeys, since nobody's
 * key goes unasked, and for spent challenges, which would count again.
 */
export const SIGN_INS_MAX = 32;
/** Spent challenges of an owner: they are small and soon over, and all operators who come by a provider are one owner. */
export const SPENT_MAX = 512;
export const SIGN_IN_DATA_BYTES_MAX = 4_096;

export interface SignInRecord {
  readonly kind: SignInKind;
  /** Within its owner and kind: a digest or a public credential id, never a secret. [A-Za-z0-9_-]{1,344} */
  readonly id: string;
  /** JSON text of whoever keeps it, at most SIGN_IN_DATA_BYTES_MAX bytes. */
  readonly data: string;
  /** When it was kept, or kept anew, by the store's own clock. */
  readonly createdAtMs: number;
  /** From when on it is as if it were not there; undefined: never. By the store's own clock. */
  readonly expiresAtMs?: number | undefined;
}

/** Without `lastsMs` it has no end. */
export type NewSignIn = Pick<SignInRecord, "kind" | "id" | "data"> & {
  readonly lastsMs?: number | undefined;
  /**
   * `new`: only where there is none of this id, but for one of this very text: that is what the same call has kept, whose answer
   * was lost. Two calls have two texts. `known`: only in place of one. Either way otherwise.
   */
  readonly only?: "new" | "known" | undefined;
  /** With `known`: only in place of one that has this text. Two that change a record at a time do not undo each other's change so. */
  readonly was?: string | undefined;
  /** Only while the owner has this one, too: what was begun by a record that was removed meanwhile is not there after it. */
  readonly by?: SignInPlace | undefined;
};

/** Which of an owner's records. */
export type SignInPlace = Pick<SignInRecord, "kind" | "id">;

/** How many of a kind an owner has at most. */
export const mostOf = (kind: SignInKind): number => (kind === "spent" ? SPENT_MAX : SIGN_INS_MAX);

/** Whether the oldest of a kind gives way to one more. */
export const givesWay = (kind: SignInKind): boolean => kind === "link" || kind === "session";

/** The store's calls. Whether there is such an account is the caller's to know. */
export interface SignIns {
  /**
   * Inserts or replaces; a record that is replaced is the youngest of its kind. Beyond `mostOf` the oldest of the kind goes.
   * `too_many`: it would be one beyond them of a kind that gives no way. `unmet`: not what `only` or `by` asks for. Nothing was kept then.
   */
  keepSignIn(owner: SignInOwner, record: NewSignIn): Promise<"kept" | "too_many" | "unmet">;
  /**
   * Removes a record and gives it, once, whoever asks at the same time; undefined when it is absent or over. Where the answer
   * is lost on its way nobody has it.
   */
  takeSignIn(owner: SignInOwner, kind: SignInKind, id: string): Promise<SignInRecord | undefined>;
  findSignIn(owner: SignInOwner, kind: SignInKind, id: string): Promise<SignInRecord | undefined>;
  /** In the order in which they were kept, those that are not over. */
  listSignIns(owner: SignInOwner): Promise<readonly SignInRecord[]>;
  /**
   * Whether it was there.
   * @param keptByMs removes only what was kept by then: a removal that is done again.
   */
  dropSignIn(owner: SignInOwner, kind: SignInKind, id: string, keptByMs?: number): Promise<boolean>;
  /** All of these kinds, at one instant. @returns how many were there. */
  dropSignIns(owner: SignInOwner, ...kinds: readonly SignInKind[]): Promise<number>;
}
