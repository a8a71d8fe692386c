/**
 * The only place that spells Redis keys. All records of an account carry its hash tag and are therefore in one slot.
 * The indexes of names and of codes have slots of their own (`{idx:codes}` and `idx:codes` have the same hash).
 */
import type { CodeHash } from "../../values/code.ts";
import type { AccountTag } from "../../values/key.ts";
import type { SignInOwner } from "../sign-ins.ts";

/** A hash: money, plan, keys, entitlements, buckets, requests in flight (fields: see the Lua files in this folder). */
export const accountKey = (tag: AccountTag): string => `{a:${tag}}`;
/** A hash: request id -> hold record. */
export const holdsKey = (tag: AccountTag): string => `{a:${tag}}:h`;
/** A sorted set: request id by expiry. */
export const expiriesKey = (tag: AccountTag): string => `{a:${tag}}:hx`;
/** A string that expires: the settled mark of a request. */
export const settledKey = (tag: AccountTag, requestId: string): string => `{a:${tag}}:d:${requestId}`;
/** Match every key of one account, or of all. */
export const wholePattern = (tag: AccountTag): string => `{a:${tag}}*`;
export const ACCOUNTS_WHOLE = "{a:*}*";

/** The account whose hash, ledger or opening line a key is; undefined for every other key. */
export function accountOf(key: string): AccountTag | undefined {
  return /^\{a:([^{}]+)\}(?::lo?)?$/.exec(key)?.[1] as AccountTag | undefined;
}

/** The names in the key of a settled mark; undefined for another key. */
export function settledNames(key: string): { readonly tag: AccountTag; readonly requestId: string } | undefined {
  const [, tag, requestId] = /^\{a:([^{}]+)\}:d:(.+)$/s.exec(key) ?? [];
  return tag === undefined || requestId === undefined ? undefined : { tag: tag as AccountTag, requestId };
}

/**
 * A string that expires: which request took an idempotency key, and how that ended. `hash` is that of the client's key.
 */
export const idempotencyKey = (tag: AccountTag, hash: string): string => `{a:${tag}}:idem:${hash}`;
/** A stream: the ledger; entry `<seq>-0` is line `seq`. */
export const ledgerKey = (tag: AccountTag): string => `{a:${tag}}:l`;
/** A hash: number and text of the opening line, once the ledger's beginning is archived. */
export const openingKey = (tag: AccountTag): string => `{a:${tag}}:lo`;
/** A hash: payment id -> amount. */
export const paymentsKey = (tag: AccountTag): string => `{a:${tag}}:pay`;
/** A hash: `group|model|key` -> charged on that UTC day. */
export const dayKey = (tag: AccountTag, day: string): string => `{a:${tag}}:day:${day}`;
/** A hash: `<count>|group|model|key` -> requests or tokens of a kind on that UTC day. */
export const dayCountsKey = (tag: AccountTag, day: string): string => `{a:${tag}}:use:${day}`;
/** Matches every key of an account except the first. A tag contains no special characters of patterns. */
export const accountPattern = (tag: AccountTag): string => `{a:${tag}}:*`;

/** A hash: account name -> tag. */
export const NAME_INDEX = "idx:accounts";
/** A sorted set of the same names, in order. */
export const NAMES_IN_ORDER = "{idx:accounts}:names";

/** A hash in a slot of its own: a code and its state. */
export const codeKey = (hash: CodeHash): string => `c:${hash}`;
/** A hash: code id -> code hash. */
export const CODE_INDEX = "idx:codes";
/** A sorted set of the same ids, in order. */
export const CODES_IN_ORDER = "{idx:codes}:ids";
/** A hash: a batch of codes. */
export const batchKey = (id: string): string => `{idx:codes}:b:${id}`;
/** A sorted set: ids of a batch's codes, in order. */
export const batchCodesKey = (id: string): string => `{idx:codes}:bc:${id}`;
/** A sorted set: ids of batches, in order. */
export const BATCHES_IN_ORDER = "{idx:codes}:batches";
/** A sorted set: hashes of codes whose redemption has begun, by the instant of its beginning. */
export const CLAIMS = "{idx:codes}:claims";

/** A string that lives for a second: written after a write to a key, in its slot, for replicas to confirm. */
export const fenceKey = (key: string): string => `epoch:fence:${/\{.+?\}/.exec(key)?.[0] ?? `{${key}}`}`;

/**
 * A hash with the gateway's own queue of notices, and a string that expires: who delivers. Their names begin like the
 * marks of histories, because existing Redis users may already have the right to such keys.
 */
export const GATEWAY_NOTICES = "epoch:{notices}";
export const NOTICES_LEASE = "epoch:{notices}:lease";

/**
 * A hash: what lets an account's owner, or the operator, into the console. The operator's name begins like the marks of
 * histories, for the same reason.
 */
export const signInsKey = (owner: SignInOwner): string =>
  owner === "operator" ? "epoch:{sign-ins}" : `{a:${owner}}:sign-ins`;

/** A hash: the mark of this history of a part of the store. */
export const epochKey = (part: string): string => `epoch:{${part}}`;
