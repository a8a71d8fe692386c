/**
 * The embedded store: node:sqlite for persistent data, memory for the rest, one process. Each operation is synchronous
 * from its first read to its last write, and therefore atomic; the contract has promises only because of Redis.
 */
import { type Calls, checkedCalls } from "../calls.ts";
import { type Store, StoreError } from "../contract.ts";
import type { NoticeWriter } from "../notices.ts";
import * as accounts from "./accounts.ts";
import { admit, extend } from "./admit.ts";
import { archiveLedger } from "./archive.ts";
import * as cards from "./cards.ts";
import * as codes from "./codes.ts";
import { Context } from "./context.ts";
import { bootId } from "./database/boot-id.ts";
import { openDatabase } from "./database/open.ts";
import { pageDays, pageUpstreamDays, readDays } from "./days.ts";
import * as epoch from "./epoch.ts";
import { listRecords, readFigures, readLimits } from "./figures.ts";
import { inspect, readLedger } from "./inspect.ts";
import * as keys from "./keys.ts";
import * as notices from "./notices.ts";
import { settle, settledAmounts } from "./settle.ts";
import * as signIns from "./sign-ins.ts";

/**
 * Opens the store in a folder that belongs to this process alone.
 * @param now milliseconds since the epoch: the store's clock.
 * @param isRecovered as in `OpenOptions`.
 * @throws StoreError when the folder is in use or cannot be opened.
 */
export function openEmbedded(
  dir: string,
  now: () => number,
  noticeWriter?: NoticeWriter,
  gatherMs?: number,
  isRecovered?: () => boolean,
): Store {
  return embeddedOver(
    new Context(
      answering(() => openDatabase(dir, gatherMs)),
      now,
      noticeWriter,
      isRecovered,
    ),
  );
}

function answering<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw failureOf(error);
  }
}

/** Errors of the disk or of SQLite are "unavailable" to the caller; a defect of ours stays as it is. */
function failureOf(cause: unknown): unknown {
  if (!isOfTheDisk(cause)) return cause;
  const outcome = isOfARow(cause) ? "refused" : "unknown";
  return new StoreError("unavailable", `the embedded store did not answer: ${cause.message}`, { cause, outcome });
}

/** SQLITE_CONSTRAINT, in the low byte of its extended codes (https://sqlite.org/rescode.html). */
const CONSTRAINT = 19;

/** The account's own rows contradict the write; rows of other accounts can be written. */
function isOfARow(error: Error): boolean {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && (errcode & 0xff) === CONSTRAINT;
}

function isOfTheDisk(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { code, errno } = error as NodeJS.ErrnoException;
  return code === "ERR_SQLITE_ERROR" || typeof errno === "number";
}

/** Answers from the database and the memory next to it. */
const CALLS: Calls<Context> = {
  admit,
  extend,
  settle,
  readKey: keys.readKey,
  readLimits,
  createAccount: accounts.createAccount,
  getAccount: accounts.getAccount,
  findAccount: accounts.findAccount,
  findAccountName: accounts.findAccountName,
  listAccountNames: accounts.listAccountNames,
  listAccounts: accounts.listAccounts,
  setPlan: accounts.setPlan,
  setAccountLimits: accounts.setAccountLimits,
  readAccountBudgets: accounts.readAccountBudgets,
  setNotifyBelow: accounts.setNotifyBelow,
  changeAccount: accounts.changeAccount,
  renameAccount: accounts.renameAccount,
  closeAccount: accounts.closeAccount,
  createKey: keys.createKey,
  listKeys: keys.listKeys,
  changeKey: keys.changeKey,
  noteKeyUses: keys.noteKeyUses,
  rotateKey: keys.rotateKey,
  revokeKey: keys.revokeKey,
  credit: accounts.credit,
  grant: cards.grant,
  listCards: cards.listCards,
  createCodes: codes.createCodes,
  listCodes: codes.listCodes,
  getCode: codes.getCode,
  getBatch: codes.getBatch,
  listBatches: codes.listBatches,
  listBatchCodes: codes.listBatchCodes,
  voidCode: codes.voidCode,
  voidCodes: codes.voidCodes,
  redeem: codes.redeem,
  // A claim and its credit are one transaction here, so no claim is ever left open.
  finishClaims: () => 0,
  readDays,
  pageDays,
  pageUpstreamDays,
  settledAmounts,
  readFigures,
  listRecords,
  // A settlement is one transaction, so no mark lacks its line.
  pageMarks: () => ({ items: [], next: undefined }),
  readLedger,
  archiveLedger,
  addNotice: notices.addNotice,
  readNotices: notices.readNotices,
  takeNotice: notices.takeNotice,
  pageNotices: notices.pageNotices,
  // Only this process uses the folder.
  leaseNotices: () => true,
  keepSignIn: signIns.keepSignIn,
  takeSignIn: signIns.takeSignIn,
  findSignIn: signIns.findSignIn,
  listSignIns: signIns.listSignIns,
  dropSignIn: signIns.dropSignIn,
  dropSignIns: signIns.dropSignIns,
  inspect,
  countEpoch: (context, _part, known, fresh) => epoch.countEpoch(context, known, fresh),
  stopEpoch: (context, _part, id) => epoch.stopEpoch(context, id),
  renewEpoch: (context, _part, from, to) => epoch.renewEpoch(context, from, to),
};

/** The store over an open database; the simulation's is in memory. */
export function embeddedOver(context: Context): Store {
  const boot = bootId();
  let isOpen = true;
  const run = <T>(work: (context: Context) => T): T => {
    if (!isOpen) throw new StoreError("unavailable", "the store is closed");
    return work(context);
  };
  const answer = <T>(work: (context: Context) => T): T => answering(() => run(work));
  const store: Store = {
    ...checkedCalls(CALLS, run, failureOf),
    // The id of the database, for as long as the file exists, and the machine's boot.
    identity: async () => answer(({ db }) => `${db.get("SELECT id FROM identity")?.id}:${boot}`),
    epochParts: 1,
    epochPartOf: () => 0,
    // There are no replicas.
    confirming: () => store,
    shardOf: () => "",
    async check() {
      answer(({ db }) => db.get("SELECT 1"));
    },
    async close() {
      if (!isOpen) return;
      isOpen = false;
      context.db.close();
    },
  };
  return store;
}
