/**
 * What both stores do before they answer a call: check its arguments. Each store is then a table of functions of its
 * own context.
 */
import {
  checkAccountChange,
  checkAdmit,
  checkArchive,
  checkCodeHash,
  checkCodes,
  checkCredit,
  checkExtend,
  checkFigures,
  checkGrant,
  checkIds,
  checkKeyChange,
  checkKeyHash,
  checkLimits,
  checkName,
  checkNotice,
  checkNotifyBelow,
  checkOutbox,
  checkRequestIds,
  checkRotation,
  checkSettle,
  checkSignIn,
  checkSignInKinds,
  checkSignInOwner,
  checkSignInPlace,
  checkTag,
  checkUses,
} from "./checks.ts";
import { type Store, StoreError } from "./contract.ts";
import { daysOfSpan } from "./sums/day-sums.ts";

/** Calls that are answered from the data. The others are about the store itself. */
type DataCall = Exclude<
  keyof Store,
  "shardOf" | "confirming" | "check" | "close" | "identity" | "epochParts" | "epochPartOf"
>;

/** How a store answers each call. `C`: what it answers from, such as a connection. */
export type Calls<C> = {
  readonly [K in DataCall]: (
    context: C,
    ...args: Parameters<Store[K]>
  ) => ReturnType<Store[K]> | Awaited<ReturnType<Store[K]>>;
};

type Checks = { readonly [K in DataCall]: ((...args: Parameters<Store[K]>) => void) | undefined };

/** What each call's arguments must be. A wrong argument is a defect of ours: user input is checked elsewhere. */
const CHECKS: Checks = {
  admit: checkAdmit,
  extend: checkExtend,
  settle: checkSettle,
  readKey(tag, hash) {
    checkTag(tag);
    checkKeyHash(hash);
  },
  readLimits: checkTag,
  createAccount({ tag, name, plan }) {
    checkTag(tag);
    checkName(name, "an account name");
    checkName(plan, "a plan");
  },
  getAccount: checkTag,
  findAccount: undefined,
  findAccountName: undefined,
  listAccountNames: undefined,
  listAccounts: undefined,
  setPlan(tag, plan) {
    checkTag(tag);
    checkName(plan, "a plan");
  },
  setAccountLimits(tag, limits) {
    checkTag(tag);
    checkLimits(limits);
  },
  readAccountBudgets: checkTag,
  setNotifyBelow(tag, below) {
    checkTag(tag);
    checkNotifyBelow(below);
  },
  changeAccount(tag, change) {
    checkTag(tag);
    checkAccountChange(change);
  },
  renameAccount(tag, name) {
    checkTag(tag);
    checkName(name, "an account name");
  },
  closeAccount: checkTag,
  createKey(tag, { id, hash, group, name, expiresAtMs }) {
    checkTag(tag);
    checkKeyHash(hash);
    checkName(id, "a key id");
    checkKeyChange({ group, name, expiresAtMs });
  },
  listKeys: checkTag,
  noteKeyUses(tag, uses) {
    checkTag(tag);
    checkUses(uses);
  },
  changeKey(tag, _keyId, change) {
    checkTag(tag);
    checkKeyChange(change);
  },
  rotateKey(tag, _keyId, rotation) {
    checkTag(tag);
    checkRotation(rotation);
  },
  revokeKey: checkTag,
  credit(tag, payment) {
    checkTag(tag);
    checkCredit(payment);
  },
  grant(tag, entitlement) {
    checkTag(tag);
    checkGrant(entitlement);
  },
  listCards: checkTag,
  createCodes: checkCodes,
  listCodes: undefined,
  getCode: undefined,
  getBatch: undefined,
  listBatches: undefined,
  listBatchCodes: undefined,
  voidCode: undefined,
  voidCodes: checkIds,
  redeem({ tag, hash }) {
    checkTag(tag);
    checkCodeHash(hash);
  },
  finishClaims: undefined,
  readDays(tag, since, until) {
    checkTag(tag);
    daysOfSpan(since, until);
  },
  pageDays: checkSpan,
  pageUpstreamDays: checkSpan,
  readFigures(tag, ask) {
    checkTag(tag);
    checkFigures(ask);
  },
  listRecords: checkTag,
  settledAmounts(tag, requestIds) {
    checkTag(tag);
    checkRequestIds(requestIds);
  },
  pageMarks(tag) {
    if (tag !== undefined) checkTag(tag);
  },
  readLedger: checkTag,
  archiveLedger(tag, ask) {
    checkTag(tag);
    checkArchive(ask);
  },
  addNotice(outbox, notice) {
    checkOutbox(outbox);
    checkNotice(notice);
  },
  readNotices: checkOutbox,
  takeNotice: checkOutbox,
  pageNotices: undefined,
  leaseNotices({ holder }) {
    checkName(holder, "a holder");
  },
  keepSignIn: checkSignIn,
  takeSignIn: checkSignInPlace,
  findSignIn: checkSignInPlace,
  listSignIns: checkSignInOwner,
  dropSignIn: checkSignInPlace,
  dropSignIns: checkSignInKinds,
  inspect: checkTag,
  countEpoch: undefined,
  stopEpoch: undefined,
  renewEpoch: undefined,
};

function checkSpan(tag: Parameters<Store["pageDays"]>[0], { since, until }: Parameters<Store["pageDays"]>[1]): void {
  checkTag(tag);
  daysOfSpan(since, until);
}

/**
 * The calls of a store, each of which checks its arguments first.
 * @param answer runs the work of a call; what it throws becomes the rejection of the call.
 * @param failure turns an error of the store into the error for the caller.
 */
export function checkedCalls<C>(
  calls: Calls<C>,
  answer: (work: (context: C) => unknown) => unknown,
  failure: (error: unknown) => unknown = (error) => error,
): Pick<Store, DataCall> {
  type AnyCall = (...args: unknown[]) => unknown;
  const failed = (error: unknown): Promise<never> => {
    const own = failure(error);
    return Promise.reject(isUnreadable(own) ? unreadable(own) : own);
  };
  const made: Record<string, AnyCall> = {};
  for (const name of Object.keys(CHECKS) as DataCall[]) {
    const check = CHECKS[name] as AnyCall | undefined;
    const call = calls[name] as AnyCall;
    // One promise for each call. An async function would add a second promise to that of the answer.
    made[name] = (...args) => {
      try {
        check?.(...args);
      } catch (error) {
        return Promise.reject(error);
      }
      try {
        const answered = answer((context) => call(context, ...args));
        return answered instanceof Promise ? answered.catch(failed) : Promise.resolve(answered);
      } catch (error) {
        return failed(error);
      }
    };
  }
  return made as unknown as Pick<Store, DataCall>;
}

/** What JavaScript throws for a record that we did not write. Refusals of an argument are ours and name the store. */
function isUnreadable(error: unknown): error is Error {
  if (error instanceof RangeError) return !error.message.startsWith("store: ");
  return error instanceof SyntaxError || error instanceof TypeError;
}

/** The store answers and other records can be read, so the outcome concerns only this step. */
function unreadable(error: Error): StoreError {
  const message = `a record of the store cannot be read: ${error.message}`;
  return new StoreError("unavailable", message, { cause: error, outcome: "refused" });
}
