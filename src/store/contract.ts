/**
 * What Tollgate requires of a store. There are two: embedded (node:sqlite and memory) and Redis (Lua scripts). One test
 * suite checks both; a differential test runs the same operations on both and compares the results of `inspect`.
 *
 * Rules for every operation:
 * - It is atomic within one account.
 * - It may be repeated with the same id when its outcome is unknown.
 * - The store's own clock is the only clock for buckets, cards and holds.
 * - Amounts are NanoUsd here and decimal strings inside the store.
 * - A store that cannot answer rejects with StoreError and never says "no such key".
 * - A `revision` or `fromMs` marks a write that is replayed. It takes effect only if it is above the record's revision;
 *   a replayed revocation always takes effect.
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
 * What a missing answer means. `unknown`: the store may be unavailable, and may still have acted. `unsent`: it was not
 * asked. `refused`: it works, and reported an error for this one step.
 */
export type StepOutcome = "unknown" | "unsent" | "refused";

/** The store gave no usable answer: it is unreachable, slow, read-only or out of memory. */
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

/** No server answers for the store. The health check reports it, so callers on a timer need not. */
export class StoreUnreachableError extends StoreError {}

/** Who did not confirm a write: no replica in time, or the server itself, which may have no replicas. */
export type Unconfirming = "replicas" | "server";

const UNCONFIRMED = {
  replicas: "no replica of the store has confirmed the write",
  server: "the store's server did not answer after the write, or its connection was lost",
} as const satisfies Record<Unconfirming, string>;

/** The store has made the write, but it is not confirmed that it lasts. Repeating the write is harmless. */
export class UnconfirmedError extends StoreError {
  readonly by: Unconfirming;
  /** What the store answered; undefined when the write was not finished. */
  readonly answer: unknown;

  constructor(by: Unconfirming, answer: unknown) {
    super("unconfirmed", UNCONFIRMED[by]);
    this.by = by;
    this.answer = answer;
  }
}

/** The calls made for a request; each is one round trip. */
export interface RequestStore {
  /** Decides a request: key, group, plan, funds, limits, hold. Idempotent by request id. */
  admit(ask: AdmitAsk): Promise<Admitted | AdmitRefused>;
  /**
   * Raises the hold of a running request as far as free funds, or the rest of the entitlement that pays, allow. It is
   * not raised for a key that is revoked or suspended by now, nor in an account that is suspended or closed. Idempotent
   * by request id and target. The lifetime of the hold stays the same.
   */
  extend(ask: ExtendAsk): Promise<ExtendAnswer>;
  /**
   * Posts or voids a hold exactly once and writes the ledger lines. Idempotent by request id.
   * @param isAwaited the client gets the end of its answer after this settlement. Up to some hundreds of these
   * are sent at once, without queueing behind settlements that are replayed.
   */
  settle(ask: SettleAsk, isAwaited?: boolean): Promise<SettleAnswer>;

  /** What a key may use; undefined when the key is unknown. Revoked keys are returned as revoked. */
  readKey(tag: AccountTag, hash: KeyHash): Promise<KeyView | undefined>;

  /**
   * The server that has this account, for callers that count per server. The same text for all accounts unless the
   * store is a cluster.
   */
  shardOf(tag: AccountTag): string;
}

/** The calls of operators: accounts, keys, money, cards, spending, and console sign-ins. */
interface OperatorStore extends SignIns {
  /**
   * Usage of the limits of a scope (`limitScope` of names.ts), as the next admission would find it. Changes nothing.
   * Undefined when there is no such account.
   */
  readLimits(tag: AccountTag, scope: string): Promise<LimitUsage | undefined>;

  /** Creates an account; the caller chooses the tag. `exists`: the tag or the name is taken. */
  createAccount(account: { tag: AccountTag; name: string; plan: string }): Promise<Account | "exists">;
  getAccount(tag: AccountTag): Promise<Account | undefined>;
  findAccount(name: string): Promise<Account | undefined>;
  /** The same without reading the account: whether it exists and can be read is not checked. */
  findAccountName(name: string): Promise<AccountName | undefined>;
  /**
   * Names and tags of all accounts by name, `limit` at most 200 a page. Includes names whose account does not exist.
   */
  listAccountNames(cursor: string | undefined, limit: number): Promise<Page<AccountName>>;
  /** Accounts by name, `limit` at most 200 a page. */
  listAccounts(cursor: string | undefined, limit: number): Promise<Page<Account>>;
  setPlan(tag: AccountTag, plan: string, revision?: number): Promise<Account | undefined>;
  /**
   * Sets the limits of an account, a text of `limits.ts`, from the next request on. Revisions work as for the plan.
   * Undefined when there is no such account.
   */
  setAccountLimits(tag: AccountTag, limits: string, revision?: number): Promise<Account | undefined>;
  /** What is spent and held of the account's budgets, by `budgetField`. Undefined when there is no such account. */
  readAccountBudgets(tag: AccountTag): Promise<AccountBudgets | undefined>;

  /** The balance below which a notice is sent (notices.ts); undefined: as the configuration says. */
  setNotifyBelow(tag: AccountTag, below: NanoUsd | undefined, revision?: number): Promise<Account | undefined>;
  /**
   * Takes effect from the next request on. `too_many`: the account would have more than LABELS_MAX labels. Undefined
   * when there is no such account; a closed account stays as it is.
   */
  changeAccount(tag: AccountTag, change: AccountChange, revision?: number): Promise<Account | "too_many" | undefined>;
  /**
   * Renames an account; the old name becomes free. The account can be found by one of the two names at any time, even
   * when the call is cut off; repeating the call finishes it. `taken`: another account has the name. Undefined when
   * there is no such account; a closed account stays as it is. Of several concurrent renames the last one wins, and the
   * answers of the others have its name.
   */
  renameAccount(tag: AccountTag, name: string, revision?: number): Promise<Account | "taken" | undefined>;
  /**
   * Final: from that step on its keys are refused, and then revoked; it takes no funds and no keys. Undefined: no such
   * account.
   */
  closeAccount(tag: AccountTag, revision?: number): Promise<Account | undefined>;

  /** Adds a key. Repeating the same key changes nothing. Undefined when there is no such account, or it is closed. */
  createKey(tag: AccountTag, key: NewKeyRecord): Promise<Key | undefined>;
  listKeys(tag: AccountTag): Promise<readonly ListedKey[]>;
  /** Records the last use of keys, if it is later than the recorded one. Unknown keys are skipped. */
  noteKeyUses(tag: AccountTag, uses: readonly KeyUse[]): Promise<void>;
  /**
   * Takes effect from the next request on (ARCHITECTURE.md promise 4). Undefined when there is no such key; a revoked
   * key stays as it is.
   */
  changeKey(tag: AccountTag, keyId: string, change: KeyChange, revision?: number): Promise<Key | undefined>;
  /**
   * Gives a key another value, from the next request on. Repeating the same hash changes nothing. `too_many`:
   * KEY_VALUES_MAX of its values work already. Undefined when there is no such key; a revoked key stays as it is.
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
   * Adds funds, or takes funds if the amount is negative, once per payment id. `mismatch`: the id was used with another
   * amount. `refused`: the balance less its holds would leave [0, NANO_USD_MAX]. `closed`: the account is closed, and
   * funds can only be taken from it. A replay (`again`) always takes effect.
   */
  credit(
    tag: AccountTag,
    payment: { id: string; amount: bigint; kind: "topup" | "adjust"; note: string; again?: boolean },
  ): Promise<
    | { readonly outcome: "credited" | "duplicate"; readonly balance: NanoUsd }
    | { readonly outcome: "mismatch" | "refused" | "closed" | "unknown_account" }
  >;

  /** Gives an account the entitlement of a redeemed card, once per entitlement id. */
  grant(
    tag: AccountTag,
    entitlement: {
      id: string;
      /** The card kind's name. */
      card: string;
      /** Whether the operator gives the card away; otherwise a code was sold. The ledger distinguishes the two. */
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
   * @param ended also cards that have ended; each stays until the first card that is given more than
   * ENTITLEMENT_LINGER_MS after its end.
   */
  listCards(
    tag: AccountTag,
    ended?: boolean,
  ): Promise<{ readonly cards: readonly Entitlement[]; readonly storeTimeMs: number } | undefined>;

  /**
   * Makes codes, at most CODES_MAX, each once per hash. Repeating the call changes nothing. `taken`: another code has
   * the id of the first one, so these codes must not be given to anybody.
   * @param batch the label of their batch and the number of codes in it. The batch is made together with its first
   * codes.
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
  /** Codes of a batch by id, `limit` at most 200 a page; none if the batch does not exist. */
  listBatchCodes(batch: string, cursor: string | undefined, limit: number): Promise<Page<Code>>;
  /** Voids an unclaimed code permanently. The state in the answer says whether it is void. */
  voidCode(id: string): Promise<Code | undefined>;
  /** The same for up to 200 codes, each independently. Codes that do not exist are left out of the answer. */
  voidCodes(ids: readonly string[]): Promise<readonly Code[]>;
  /**
   * Redeems a code for an account. Exactly one account claims it and is credited once, even with concurrent claims and
   * crashes in between (docs/failure-model.md invariant 11). Idempotent for the account that has it. A closed account
   * gets no code, except in a replay (`fromMs`).
   */
  redeem(ask: {
    readonly hash: CodeHash;
    readonly tag: AccountTag;
    readonly fromMs?: number | undefined;
  }): Promise<RedeemAnswer>;

  /**
   * Sums of an account per day, ordered by day, from one UTC day to another, both included, at most DAYS_MAX days. An
   * unknown account has none.
   */
  readDays(tag: AccountTag, since: string, until: string): Promise<readonly DaySum[]>;

  /**
   * The same in bounded steps: a page has some days, or some of the fields of one day. No sum is on two pages.
   * @param cursor the `next` of the page before.
   */
  pageDays(tag: AccountTag, span: DaySpan, cursor: string | undefined): Promise<Page<DaySum>>;
  /**
   * Sums per day by upstream and its model, in the same steps. Several pages may have the same day, upstream and model,
   * each with a part of the sum: add them up.
   */
  pageUpstreamDays(tag: AccountTag, span: DaySpan, cursor: string | undefined): Promise<Page<UpstreamDaySum>>;

  /**
   * Ledger lines of an account after `afterSeq`, oldest first. If some of them are archived, the opening line comes
   * first.
   */
  readLedger(tag: AccountTag, afterSeq: number, limit: number): Promise<readonly LedgerLine[]>;

  /**
   * This store for operators. If there are replicas, a write is answered when a replica has it, and rejects with
   * UnconfirmedError when no replica confirms it in time. On Redis it also rejects with that when the connection is lost
   * right after the write. `close` of this store closes both.
   */
  confirming(): Store;
}

/** The calls of the gateway itself: audits, archives, unfinished work, the store's health. */
interface UpkeepStore extends Epochs {
  /**
   * Credits at most `limit` codes whose redemption was cut off after the claim.
   * @param onFinished called for each redemption once its account has the card. If a call was cut off, it is called
   * again for the same redemption.
   * @returns how many redemptions it finished.
   */
  finishClaims(limit: number, onFinished?: (redemption: Redemption) => Promise<void>): Promise<number>;

  /**
   * The settled amounts of requests of an account, in the order of the ids, at most SETTLED_IDS_MAX. Undefined where no
   * mark proves that the whole settlement was written, and for unknown accounts.
   */
  settledAmounts(tag: AccountTag, requestIds: readonly RequestId[]): Promise<readonly (NanoUsd | undefined)[]>;

  /** Figures of an account at one instant, for audits (figures.ts). Undefined when there is no such account. */
  readFigures(tag: AccountTag, ask: FiguresAsk): Promise<AccountFigures | undefined>;
  /**
   * Names of what an account has, one page per bounded step. A record that exists all the time is on one of the pages.
   */
  listRecords(tag: AccountTag, cursor: string | undefined): Promise<RecordNames>;

  /**
   * Settled marks, of one account or of all, that their own line does not confirm, and accounts that their names do not
   * lead to; one page per bounded step. It goes through all keys of the store. What exists from the first page to the
   * last is examined, perhaps twice.
   * @param cursor the `next` of the page before.
   */
  pageMarks(tag: AccountTag | undefined, cursor: string | undefined): Promise<MarksPage>;

  /**
   * Replaces the lines after `after` (the opening line's number, 0 without one) up to `opening.seq` by the opening
   * line, in one step, at most ARCHIVE_LINES_MAX lines. The caller has made sure that the lines are kept elsewhere.
   */
  archiveLedger(
    tag: AccountTag,
    ask: { readonly after: number; readonly opening: LedgerLine },
  ): Promise<ArchiveOutcome>;

  /**
   * Adds a notice (notices.ts) that no other step writes.
   * @param once the mark under which the notice is added only the first time, ever. Without it, a repeated call
   * adds another notice, which its receiver recognizes as a duplicate.
   */
  addNotice(outbox: Outbox, notice: NewNotice, once?: NoticeMark): Promise<"added" | "known" | "none">;
  /** The oldest waiting notices that are committed. */
  readNotices(outbox: Outbox, limit: number): Promise<WaitingNotices>;
  /** Removes a notice, and all before it, from the queue. Repeating it is harmless. */
  takeNotice(outbox: Outbox, seq: number): Promise<void>;
  /** Accounts with waiting notices, by name. `limit` is the number of accounts examined. */
  pageNotices(cursor: string | undefined, limit: number): Promise<Page<WaitingAccount>>;
  /** Whether this holder delivers notices for the next `ms`, on the store's clock. With `force` it always does. */
  leaseNotices(lease: { readonly holder: string; readonly ms: number; readonly force: boolean }): Promise<boolean>;

  /**
   * The whole state of an account; undefined when there is none. It sweeps nothing and changes nothing. For tests: the
   * time grows with the size of the account, on Redis with the size of the database.
   */
  inspect(tag: AccountTag): Promise<AccountState | undefined>;

  /**
   * Identifies the server that answers for the store, and its incarnation: a different text means that acknowledged
   * writes may be lost (invariant 33). Rejects with StoreError while that is unknown.
   */
  identity(): Promise<string>;
  /**
   * Resolves when the store, or a part of a cluster, answers and is fit for use; rejects with StoreError and the
   * reason.
   */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Budgets by `budgetField`. Budgets that were never used are missing. */
export type AccountBudgets = ReadonlyMap<string, BudgetCounts>;

export interface Store extends RequestStore, OperatorStore, UpkeepStore {}
