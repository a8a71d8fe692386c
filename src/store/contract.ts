/**
 * What Tollgate asks of a store. Two stores keep it, embedded (node:sqlite and memory) and Redis (Lua scripts), and one
 * suite of tests holds both to it; a differential test drives both with the same operations and compares `inspect`.
 *
 * Rules of every operation: it is atomic within one account; it may be sent again with the same id when its outcome is
 * unknown; the store's own clock is the only clock of buckets, cards and holds; amounts are NanoUsd here and decimal
 * strings inside; a store that cannot answer rejects with StoreError and never says "no such key". A `revision` or
 * `fromMs` marks a write that is done again: it counts only above the record's revision, a revocation in any case.
 */
import type { CodeHash } from "../values/code.ts";
import type { AccountTag, KeyHash } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";
import type { AdmitAsk, AdmitRefused, Admitted } from "./admission.ts";
import type { LimitUsage } from "./buckets.ts";
import type { Epochs } from "./epoch.ts";
import type { ExtendAnswer, ExtendAsk } from "./extension.ts";
import type { AccountFigures, FiguresAsk, MarksPage, RecordNames } from "./figures.ts";
import type { ArchiveOutcome } from "./ledger/opening.ts";
import type { BudgetCounts } from "./limits/budgets.ts";
import type { NewNotice, NoticeMark, Outbox, WaitingAccount, WaitingNotices } from "./notices.ts";
import type {
  Account,
  AccountChange,
  AccountName,
  AccountState,
  Code,
  CodeBatch,
  CodeFacts,
  DaySum,
  Entitlement,
  Key,
  KeyChange,
  KeyRotation,
  KeyUse,
  KeyView,
  LedgerLine,
  ListedKey,
  NewKeyRecord,
  Page,
  RedeemAnswer,
  Redemption,
  UpstreamDaySum,
} from "./records.ts";
import type { SettleAnswer, SettleAsk } from "./settlement.ts";
import type { SignIns } from "./sign-ins.ts";
import type { DaySpan } from "./sums/day-sums.ts";

/**
 * What a missing answer means: `unknown`, the store may be away and may still have acted; `unsent`, it was not asked;
 * `refused`, it works, and had an error for this one step.
 */
export type StepOutcome = "unknown" | "unsent" | "refused";

/** The store gave no usable answer (away, slow, read-only, out of memory). */
export class StoreError extends Error {
  override readonly name = "StoreError";
  /** `unavailable`: try later. `older`: the store lost data and an operator must confirm. */
  readonly kind: "unavailable" | "older" | "unconfirmed";
  readonly outcome: StepOutcome;

  constructor(kind: StoreError["kind"], message: string, options: ErrorOptions & { outcome?: StepOutcome } = {}) {
    const { outcome = "unknown", ...rest } = options;
    super(message, rest);
    this.kind = kind;
    this.outcome = outcome;
  }
}

/** Nobody answers for the store. The health check tells of it; what asks on a timer need not. */
export class StoreAwayError extends StoreError {}

/** The store has made a write; no replica has said in time that it has it too. Sending it again is harmless. */
export class UnconfirmedError extends StoreError {
  /** What the store answered; undefined when the write was not finished. */
  readonly answer: unknown;

  constructor(answer: unknown) {
    super("unconfirmed", "no replica of the store has confirmed the write");
    this.answer = answer;
  }
}

/** The calls of a request, each one round trip. */
export interface RequestStore {
  /** Decides a request in one round trip: key, group, plan, funds, limits, hold. Idempotent by request id. */
  admit(ask: AdmitAsk): Promise<Admitted | AdmitRefused>;
  /**
   * Raises the hold of a running request as far as free funds, or the rest of the entitlement that pays, allow; not for a key that is
   * revoked or suspended by now, nor in an account that is suspended or closed.
   * Idempotent by request id and target; the hold's life stays as it was.
   */
  extend(ask: ExtendAsk): Promise<ExtendAnswer>;
  /**
   * Posts or voids a hold exactly once and writes the ledger lines. Idempotent by request id.
   * @param isAwaited the client of the request gets its end behind this: up to some hundreds of them are sent at once, and stand in
   *   no line behind those that are sent again.
   */
  settle(ask: SettleAsk, isAwaited?: boolean): Promise<SettleAnswer>;

  /** What a key may use; undefined when the key is not known. Revoked keys are shown as such. */
  readKey(tag: AccountTag, hash: KeyHash): Promise<KeyView | undefined>;

  /** Which server has this account, for those who keep count by server; the same text for all unless it is a cluster. */
  shardOf(tag: AccountTag): string;
}

/** The calls of operators: accounts, keys, money, cards, what was spent, and who may come into the console. */
interface OperatorStore extends SignIns {
  /**
   * How much of a scope's limits is used (`limitScope` of names.ts), as the next admission would find it. Changes
   * nothing. Undefined when there is no such account.
   */
  readLimits(tag: AccountTag, scope: string): Promise<LimitUsage | undefined>;

  /** Creates an account; the tag is the caller's. `exists` when the tag or the name is taken. */
  createAccount(account: { tag: AccountTag; name: string; plan: string }): Promise<Account | "exists">;
  getAccount(tag: AccountTag): Promise<Account | undefined>;
  findAccount(name: string): Promise<Account | undefined>;
  /** The same without reading the account: whether it is there, and can be read, is not known. */
  findAccountName(name: string): Promise<AccountName | undefined>;
  /** Names and tags of all accounts by name, `limit` at most 200 a page: also of one that is not there. */
  listAccountNames(cursor: string | undefined, limit: number): Promise<Page<AccountName>>;
  /** Accounts by name, `limit` at most 200 a page. */
  listAccounts(cursor: string | undefined, limit: number): Promise<Page<Account>>;
  setPlan(tag: AccountTag, plan: string, revision?: number): Promise<Account | undefined>;
  /**
   * Sets the limits of an account, a text of `limits.ts`, from the next request on; revisions as for the plan. Undefined when
   * there is no such account.
   */
  setAccountLimits(tag: AccountTag, limits: string, revision?: number): Promise<Account | undefined>;
  /** What is spent and held of the account's budgets, by `budgetField`. Undefined when there is no such account. */
  readAccountBudgets(tag: AccountTag): Promise<AccountBudgets | undefined>;

  /** Below which balance there is a notice (notices.ts); undefined: as the configuration says. */
  setNotifyBelow(tag: AccountTag, below: NanoUsd | undefined, revision?: number): Promise<Account | undefined>;
  /**
   * Counts from the next request on. `too_many`: it would have more than LABELS_MAX labels. Undefined when there is no such
   * account; a closed one stays as it is.
   */
  changeAccount(tag: AccountTag, change: AccountChange, revision?: number): Promise<Account | "too_many" | undefined>;
  /**
   * Gives an account another name; the old one is free then. It is found by one of both names at any time, also when the call
   * is cut off, and the same call again finishes it. `taken`: another account has the name. Undefined when there is no such
   * account; a closed one stays as it is. Of several at once the last one counts, and the others' answers have its name.
   */
  renameAccount(tag: AccountTag, name: string, revision?: number): Promise<Account | "taken" | undefined>;
  /** Final: its keys are refused from that step on and revoked, it takes no funds and no keys. Undefined: no such account. */
  closeAccount(tag: AccountTag, revision?: number): Promise<Account | undefined>;

  /** Adds a key; sending the same key again changes nothing. Undefined when there is no such account, or it is closed. */
  createKey(tag: AccountTag, key: NewKeyRecord): Promise<Key | undefined>;
  listKeys(tag: AccountTag): Promise<readonly ListedKey[]>;
  /** Notes the last use of keys, where it is later than what is known; a key that is not there is passed over. */
  noteKeyUses(tag: AccountTag, uses: readonly KeyUse[]): Promise<void>;
  /**
   * Counts from the next request on (ARCHITECTURE.md promise 4). Undefined when there is no such key; a revoked key stays as
   * it is.
   */
  changeKey(tag: AccountTag, keyId: string, change: KeyChange, revision?: number): Promise<Key | undefined>;
  /**
   * Gives a key another value, from the next request on; the same hash again changes nothing. `too_many`: KEY_VALUES_MAX of its
   * values work. Undefined when there is no such key; a revoked key stays as it is.
   */
  rotateKey(
    tag: AccountTag,
    keyId: string,
    rotation: KeyRotation,
    revision?: number,
  ): Promise<Key | "too_many" | undefined>;
  /** Final. */
  revokeKey(tag: AccountTag, keyId: string, revision?: number): Promise<Key | undefined>;

  /**
   * Adds (or with a negative amount takes) funds, once per payment id. `mismatch`: the id was used with another amount.
   * `refused`: the balance less its holds would leave [0, NANO_USD_MAX]. `closed`: the account is, and funds can only be taken
   * from it; what is done `again` counts in any case.
   */
  credit(
    tag: AccountTag,
    payment: { id: string; amount: bigint; kind: "topup" | "adjust"; note: string; again?: boolean },
  ): Promise<
    | { readonly outcome: "credited" | "duplicate"; readonly balance: NanoUsd }
    | { readonly outcome: "mismatch" | "refused" | "closed" | "unknown_account" }
  >;

  /** Gives an account what a redeemed card holds, once per entitlement id. */
  grant(
    tag: AccountTag,
    entitlement: {
      id: string;
      /** The card kind's name. */
      card: string;
      /** Whether the operator gives it away; else a code was sold. The ledger tells the two apart. */
      gift?: true | undefined;
      plan: string;
      group: string;
      lastsMs: number;
      afterPrevious: boolean;
      fromMs?: number | undefined;
      quota: NanoUsd | undefined;
      reference: string;
    },
  ): Promise<Entitlement | undefined>;

  /**
   * Cards that have not ended, earliest to expire first, and the store's clock. Undefined: no such account.
   * @param ended also those that have, until the first card that is given more than ENTITLEMENT_LINGER_MS later.
   */
  listCards(
    tag: AccountTag,
    ended?: boolean,
  ): Promise<{ readonly cards: readonly Entitlement[]; readonly storeTimeMs: number } | undefined>;

  /**
   * Makes codes, at most CODES_MAX, each once per hash; sending the same again changes nothing. `taken`: the first one's id is another
   * code's, and nobody may be given these.
   * @param batch what their batch is called, and how many codes it is made with; the batch is made with the first of them.
   */
  createCodes(
    facts: CodeFacts,
    codes: readonly { id: string; hash: CodeHash }[],
    batch?: Pick<CodeBatch, "label" | "count">,
  ): Promise<"made" | "taken">;
  /** Codes by id, `limit` at most 200 a page. */
  listCodes(cursor: string | undefined, limit: number): Promise<Page<Code>>;
  getCode(id: string): Promise<Code | undefined>;
  getBatch(id: string): Promise<CodeBatch | undefined>;
  /** Batches by id, `limit` at most 200 a page. */
  listBatches(cursor: string | undefined, limit: number): Promise<Page<CodeBatch>>;
  /** Codes of a batch by id, `limit` at most 200 a page; none of a batch that is not there. */
  listBatchCodes(batch: string, cursor: string | undefined, limit: number): Promise<Page<Code>>;
  /** Voids a code that nobody has claimed, for good; the answer's state says whether it is void. */
  voidCode(id: string): Promise<Code | undefined>;
  /** The same of up to 200 codes, each by itself; those that are not there are left out of the answer. */
  voidCodes(ids: readonly string[]): Promise<readonly Code[]>;
  /**
   * Redeems a code for an account. One account claims it and is credited once, even with rivals and crashes in between
   * (docs/failure-model.md invariant 11). Idempotent for the account that has it. A closed account gets none, but what is done
   * again (`fromMs`).
   */
  redeem(ask: {
    readonly hash: CodeHash;
    readonly tag: AccountTag;
    readonly fromMs?: number | undefined;
  }): Promise<RedeemAnswer>;

  /**
   * Sums per day, by day, of an account from one UTC day to another, both included, at most DAYS_MAX days.
   * An unknown account has none.
   */
  readDays(tag: AccountTag, since: string, until: string): Promise<readonly DaySum[]>;

  /**
   * The same, a part of it in one bounded step: some days, or some of the fields of one. No sum is on two pages.
   * @param cursor the `next` of the page before.
   */
  pageDays(tag: AccountTag, span: DaySpan, cursor: string | undefined): Promise<Page<DaySum>>;
  /**
   * Sums per day by upstream and its model, in such steps. Where several pages have the same day, upstream and model, each has
   * a part of it: add them up.
   */
  pageUpstreamDays(tag: AccountTag, span: DaySpan, cursor: string | undefined): Promise<Page<UpstreamDaySum>>;

  /** Ledger lines of an account from `afterSeq` on, oldest first; the opening line where some of them are archived. */
  readLedger(tag: AccountTag, afterSeq: number, limit: number): Promise<readonly LedgerLine[]>;

  /**
   * This store for operators: a write is answered when a replica has it, where there are replicas, and rejects with
   * UnconfirmedError when none says so in time. `close` of this store closes both.
   */
  confirming(): Store;
}

/** The calls of the gateway itself: audits, archives, what was left half-done, the store's own health. */
interface UpkeepStore extends Epochs {
  /**
   * Credits codes whose redemption was cut off after the claim, at most `limit`.
   * @param onFinished called for each redemption once its account has the card; called again for one where the call was
   * cut off.
   * @returns how many it brought to an end.
   */
  finishClaims(limit: number, onFinished?: (redemption: Redemption) => Promise<void>): Promise<number>;

  /**
   * What requests of an account were settled with, each in the place of its id, at most SETTLED_IDS_MAX: undefined where no mark
   * proves that all of the settlement was written, as of nobody's account.
   */
  settledAmounts(tag: AccountTag, requestIds: readonly RequestId[]): Promise<readonly (NanoUsd | undefined)[]>;

  /** Figures of an account at one instant, for audits (figures.ts). Undefined when there is no such account. */
  readFigures(tag: AccountTag, ask: FiguresAsk): Promise<AccountFigures | undefined>;
  /** Names of what an account has, a page in one bounded step: what is there all the while is on one of the pages. */
  listRecords(tag: AccountTag, cursor: string | undefined): Promise<RecordNames>;

  /**
   * Settled marks of one account, or of all, whose own line does not bear them out, and accounts that their names do not
   * lead to, a page in one bounded step. It goes through all keys of the store: what is there from the first page to the last is looked at, maybe twice.
   * @param cursor the `next` of the page before.
   */
  pageMarks(tag: AccountTag | undefined, cursor: string | undefined): Promise<MarksPage>;

  /**
   * Replaces the lines after `after` (the opening line's number, 0 without one) up to `opening.seq` by the opening line, in
   * one step, at most ARCHIVE_LINES_MAX of them. The caller has made sure that they are kept elsewhere.
   */
  archiveLedger(
    tag: AccountTag,
    ask: { readonly after: number; readonly opening: LedgerLine },
  ): Promise<ArchiveOutcome>;

  /**
   * Adds a notice (notices.ts) that no other step writes.
   * @param once under what it is added only the first time, for good; else a call that is repeated adds another one, which its
   * receiver knows for the same.
   */
  addNotice(outbox: Outbox, notice: NewNotice, once?: NoticeMark): Promise<"added" | "known" | "none">;
  /** The oldest notices that wait, committed. */
  readNotices(outbox: Outbox, limit: number): Promise<WaitingNotices>;
  /** Takes a notice, and all before it, out of the queue; harmless to repeat. */
  takeNotice(outbox: Outbox, seq: number): Promise<void>;
  /** Accounts by name, those of them that have something waiting: `limit` is how many are looked at. */
  pageNotices(cursor: string | undefined, limit: number): Promise<Page<WaitingAccount>>;
  /** Whether this holder delivers notices for so long, on the store's clock; with `force` in any case. */
  leaseNotices(lease: { readonly holder: string; readonly ms: number; readonly force: boolean }): Promise<boolean>;

  /**
   * The whole state of an account; undefined when there is none. Sweeps nothing, changes nothing. For tests: it takes as
   * long as the account is large, on Redis as the database is.
   */
  inspect(tag: AccountTag): Promise<AccountState | undefined>;

  /**
   * Which server, and which of its lives, answers for the store: another text means that acknowledged writes may be
   * lost (invariant 33). Rejects with StoreError while that is unknown.
   */
  identity(): Promise<string>;
  /** Resolves when the store, or a part of a cluster, answers and is fit for use; rejects with StoreError and the reason. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Budgets by `budgetField`; those that were never used are not there. */
export type AccountBudgets = ReadonlyMap<string, BudgetCounts>;

export interface Store extends RequestStore, OperatorStore, UpkeepStore {}
