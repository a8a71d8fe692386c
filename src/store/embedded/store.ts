/**
 * The embedded store: node:sqlite for what must last, memory for what may be forgotten, one process. Each operation is
 * synchronous from its first read to its last write, and so atomic; the promises of the contract are for Redis' sake.
 */
import type { AccountTag, KeyHash } from "../../values/key.ts";
import type { AdmitAsk } from "../admission.ts";
import {
  checkAdmit,
  checkArchive,
  checkCodeHash,
  checkCodes,
  checkCredit,
  checkExtend,
  checkFigures,
  checkGrant,
  checkKeyHash,
  checkName,
  checkSettle,
  checkTag,
} from "../checks.ts";
import { type Store, StoreError } from "../contract.ts";
import type { ExtendAsk } from "../extension.ts";
import type { FiguresAsk } from "../figures.ts";
import type { CardFacts } from "../records.ts";
import type { SettleAsk } from "../settlement.ts";
import { type DaySpan, daysOfSpan } from "../sums/day-sums.ts";
import * as accounts from "./accounts.ts";
import { admit } from "./admit.ts";
import { archiveLedger } from "./archive.ts";
import { bootId } from "./boot.ts";
import * as cards from "./cards.ts";
import * as codes from "./codes.ts";
import { Context } from "./context.ts";
import { openDatabase } from "./database.ts";
import { pageDays, pageUpstreamDays, readDays } from "./days.ts";
import * as epoch from "./epoch.ts";
import { extend } from "./extend.ts";
import { listRecords, readFigures } from "./figures.ts";
import { inspect, readLedger } from "./inspect.ts";
import * as keys from "./keys.ts";
import { readLimits } from "./limits.ts";
import { settle } from "./settle.ts";

/**
 * Opens the store in a folder that belongs to this process alone.
 * @param now milliseconds since the epoch: the store's clock.
 * @throws StoreError when the folder is in use or cannot be opened.
 */
export function openEmbedded(dir: string, now: () => number): Store {
  return embeddedOver(
    new Context(
      answering(() => openDatabase(dir)),
      now,
    ),
  );
}

/** The store over a database that is open already; the simulation's is in memory. */
export function embeddedOver(context: Context): Store {
  return new EmbeddedStore(context);
}

/** What the disk or SQLite answers is "unavailable" to the caller; a defect of ours stays what it is. */
function answering<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!isOfTheDisk(cause)) throw cause;
    throw new StoreError("unavailable", `the embedded store did not answer: ${cause.message}`, { cause });
  }
}

function isOfTheDisk(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { code, errno } = error as NodeJS.ErrnoException;
  return code === "ERR_SQLITE_ERROR" || typeof errno === "number";
}

class EmbeddedStore implements Store {
  readonly #context: Context;
  readonly #bootId = bootId();
  #open = true;

  constructor(context: Context) {
    this.#context = context;
  }

  async admit(ask: AdmitAsk) {
    checkAdmit(ask);
    return this.#answer((context) => admit(context, ask));
  }

  async extend(ask: ExtendAsk) {
    checkExtend(ask);
    return this.#answer((context) => extend(context, ask));
  }

  async settle(ask: SettleAsk) {
    checkSettle(ask);
    return this.#answer((context) => settle(context, ask));
  }

  async readKey(tag: AccountTag, hash: KeyHash) {
    checkTag(tag);
    checkKeyHash(hash);
    return this.#answer((context) => keys.readKey(context, tag, hash));
  }

  async readLimits(tag: AccountTag, scope: string) {
    checkTag(tag);
    return this.#answer((context) => readLimits(context, tag, scope));
  }

  async createAccount(account: { tag: AccountTag; name: string; plan: string }) {
    checkTag(account.tag);
    checkName(account.name, "an account name");
    checkName(account.plan, "a plan");
    return this.#answer((context) => accounts.createAccount(context, account));
  }

  async getAccount(tag: AccountTag) {
    checkTag(tag);
    return this.#answer((context) => accounts.getAccount(context, tag));
  }

  async findAccount(name: string) {
    return this.#answer((context) => accounts.findAccount(context, name));
  }

  async findAccountName(name: string) {
    return this.#answer((context) => accounts.findAccountName(context, name));
  }

  async listAccountNames(cursor: string | undefined, limit: number) {
    return this.#answer((context) => accounts.listAccountNames(context, cursor, limit));
  }

  async listAccounts(cursor: string | undefined, limit: number) {
    return this.#answer((context) => accounts.listAccounts(context, cursor, limit));
  }

  async setPlan(tag: AccountTag, plan: string, revision?: number) {
    checkTag(tag);
    checkName(plan, "a plan");
    return this.#answer((context) => accounts.setPlan(context, tag, plan, revision));
  }

  async createKey(tag: AccountTag, key: { id: string; hash: KeyHash; group: string }) {
    checkTag(tag);
    checkKeyHash(key.hash);
    checkName(key.id, "a key id");
    checkName(key.group, "a group");
    return this.#answer((context) => keys.createKey(context, tag, key));
  }

  async listKeys(tag: AccountTag) {
    checkTag(tag);
    return this.#answer((context) => keys.listKeys(context, tag));
  }

  async setKeyGroup(tag: AccountTag, keyId: string, group: string, revision?: number) {
    checkTag(tag);
    checkName(group, "a group");
    return this.#answer((context) => keys.setKeyGroup(context, tag, keyId, group, revision));
  }

  async revokeKey(tag: AccountTag, keyId: string, revision?: number) {
    checkTag(tag);
    return this.#answer((context) => keys.revokeKey(context, tag, keyId, revision));
  }

  async credit(tag: AccountTag, payment: Parameters<Store["credit"]>[1]) {
    checkTag(tag);
    checkCredit(payment);
    return this.#answer((context) => accounts.credit(context, tag, payment));
  }

  async grant(tag: AccountTag, entitlement: Parameters<Store["grant"]>[1]) {
    checkTag(tag);
    checkGrant(entitlement);
    return this.#answer((context) => cards.grant(context, tag, entitlement));
  }

  async listCards(tag: AccountTag) {
    checkTag(tag);
    return this.#answer((context) => cards.listCards(context, tag));
  }

  async createCodes(facts: CardFacts, made: Parameters<Store["createCodes"]>[1]) {
    checkCodes(facts, made);
    this.#answer((context) => codes.createCodes(context, facts, made));
  }

  async listCodes(cursor: string | undefined, limit: number) {
    return this.#answer((context) => codes.listCodes(context, cursor, limit));
  }

  async getCode(id: string) {
    return this.#answer((context) => codes.getCode(context, id));
  }

  async voidCode(id: string) {
    return this.#answer((context) => codes.voidCode(context, id));
  }

  async redeem(ask: Parameters<Store["redeem"]>[0]) {
    checkTag(ask.tag);
    checkCodeHash(ask.hash);
    return this.#answer((context) => codes.redeem(context, ask));
  }

  /** A claim and its credit are one transaction here, so that none is ever left open. */
  async finishClaims() {
    return 0;
  }

  async readDays(tag: AccountTag, since: string, until: string) {
    checkTag(tag);
    daysOfSpan(since, until);
    return this.#answer((context) => readDays(context, tag, since, until));
  }

  async pageDays(tag: AccountTag, span: DaySpan, cursor: string | undefined) {
    checkTag(tag);
    daysOfSpan(span.since, span.until);
    return this.#answer((context) => pageDays(context, tag, span, cursor));
  }

  async pageUpstreamDays(tag: AccountTag, span: DaySpan, cursor: string | undefined) {
    checkTag(tag);
    daysOfSpan(span.since, span.until);
    return this.#answer((context) => pageUpstreamDays(context, tag, span, cursor));
  }

  async readFigures(tag: AccountTag, ask: FiguresAsk) {
    checkTag(tag);
    checkFigures(ask);
    return this.#answer((context) => readFigures(context, tag, ask));
  }

  /** A settlement is a transaction: no mark is without its line. */
  async pageMarks() {
    return this.#answer(() => ({ items: [], next: undefined }));
  }

  async listRecords(tag: AccountTag, cursor: string | undefined) {
    checkTag(tag);
    return this.#answer((context) => listRecords(context, tag, cursor));
  }

  async readLedger(tag: AccountTag, afterSeq: number, limit: number) {
    checkTag(tag);
    return this.#answer((context) => readLedger(context, tag, afterSeq, limit));
  }

  async archiveLedger(tag: AccountTag, ask: Parameters<Store["archiveLedger"]>[1]) {
    checkTag(tag);
    checkArchive(ask);
    return this.#answer((context) => archiveLedger(context, tag, ask));
  }

  async inspect(tag: AccountTag) {
    checkTag(tag);
    return this.#answer((context) => inspect(context, tag));
  }

  /** The database's own, for as long as the file lives, and the machine's run. */
  async identity() {
    return this.#answer((context) => `${context.db.get("SELECT id FROM identity")?.id}:${this.#bootId}`);
  }

  readonly epochParts = 1;

  epochPartOf() {
    return 0;
  }

  async countEpoch(_part: number, known: { id: string; countMin: number } | undefined, fresh: string) {
    return this.#answer((context) => epoch.countEpoch(context, known, fresh));
  }

  async stopEpoch(_part: number, id: string) {
    this.#answer((context) => epoch.stopEpoch(context, id));
  }

  async renewEpoch(_part: number, from: string | undefined, to: { id: string; past: readonly string[] }) {
    return this.#answer((context) => epoch.renewEpoch(context, from, to));
  }

  /** There are no replicas. */
  confirming() {
    return this;
  }

  shardOf() {
    return "";
  }

  async check() {
    this.#answer((context) => context.db.get("SELECT 1"));
  }

  async close() {
    if (!this.#open) return;
    this.#open = false;
    this.#context.db.close();
  }

  #answer<T>(work: (context: Context) => T): T {
    if (!this.#open) throw new StoreError("unavailable", "the store is closed");
    return answering(() => work(this.#context));
  }
}
