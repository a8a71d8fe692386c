/**
 * Records that grant access to the console: unused sign-in links, passkeys, running sessions; and challenges that
 * were answered. They are stored next to the account that they open, or for the operator of the gateway, who has no
 * account.
 */
import type { AccountTag } from "../values/key.ts";

/** Whose record it is: an account's tag, or the operator of the gateway. */
export type SignInOwner = AccountTag | "operator";

/** `spent`: a challenge that was answered and must not be answered again. */
export type SignInKind = "link" | "passkey" | "session" | "spent";

/**
 * The most records of a kind and an owner. A further link or session replaces the oldest one. A further passkey is
 * refused, because no passkey is removed unasked. A further spent challenge is refused too, because a removed
 * challenge could be answered again.
 */
export const SIGN_INS_MAX = 32;
/**
 * The most spent challenges of an owner. They are small and soon over, and all operators who sign in through a provider
 * are one owner.
 */
export const SPENT_MAX = 512;
export const SIGN_IN_DATA_BYTES_MAX = 4_096;

export interface SignInRecord {
  readonly kind: SignInKind;
  /** Unique within its owner and kind: a digest or a public credential id, never a secret. [A-Za-z0-9_-]{1,344} */
  readonly id: string;
  /** JSON text of the caller, at most SIGN_IN_DATA_BYTES_MAX bytes. */
  readonly data: string;
  /** When it was stored or replaced, by the store's own clock. */
  readonly createdAtMs: number;
  /** The instant from which it is treated as absent; undefined: never. By the store's own clock. */
  readonly expiresAtMs?: number | undefined;
}

/** Without `lastsMs` it does not expire. */
export type NewSignIn = Pick<SignInRecord, "kind" | "id" | "data"> & {
  readonly lastsMs?: number | undefined;
  /**
   * `new`: only if there is no record with this id, or one with this very text, which the same call has stored and
   * whose answer was lost. Two calls have two texts. `known`: only if there is one to replace. Undefined: in both
   * cases.
   */
  readonly only?: "new" | "known" | undefined;
  /**
   * With `known`: only if the record to replace has this text, so that two concurrent changes do not undo each other.
   */
  readonly was?: string | undefined;
  /**
   * Only while the owner also has this record. If the record that began an operation is removed meanwhile, the
   * operation leaves nothing.
   */
  readonly by?: SignInPlace | undefined;
};

/** Identifies a record of an owner. */
export type SignInPlace = Pick<SignInRecord, "kind" | "id">;

/** The most records of a kind that an owner has. */
export const mostOf = (kind: SignInKind): number => (kind === "spent" ? SPENT_MAX : SIGN_INS_MAX);

/** Whether a further record of a kind replaces the oldest one. */
export const givesWay = (kind: SignInKind): boolean => kind === "link" || kind === "session";

/** The store's calls. The caller knows whether there is such an account. */
export interface SignIns {
  /**
   * Inserts or replaces; a replaced record becomes the youngest of its kind. Beyond `mostOf` the oldest of the kind is
   * removed, if the kind allows that (`givesWay`). Nothing is stored in two cases. `too_many`: there would be more than
   * `mostOf` of a kind that does not allow it. `unmet`: the condition `only`, `was` or `by` is not met.
   */
  keepSignIn(owner: SignInOwner, record: NewSignIn): Promise<"kept" | "too_many" | "unmet">;
  /**
   * Removes a record and returns it, once, even with concurrent callers; undefined when it is absent or over. If the
   * answer is lost on its way, the record is lost.
   */
  takeSignIn(owner: SignInOwner, kind: SignInKind, id: string): Promise<SignInRecord | undefined>;
  findSignIn(owner: SignInOwner, kind: SignInKind, id: string): Promise<SignInRecord | undefined>;
  /** Records that are not over, in the order in which they were stored. */
  listSignIns(owner: SignInOwner): Promise<readonly SignInRecord[]>;
  /**
   * Whether it existed.
   * @param keptByMs removes only records that were stored by then: for a replayed removal.
   */
  dropSignIn(owner: SignInOwner, kind: SignInKind, id: string, keptByMs?: number): Promise<boolean>;
  /** Removes all of these kinds at one instant. @returns how many there were. */
  dropSignIns(owner: SignInOwner, ...kinds: readonly SignInKind[]): Promise<number>;
}
