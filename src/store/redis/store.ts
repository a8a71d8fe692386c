/** The store on Redis: single, Sentinel or Cluster. One script and one round trip per step. */
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
import type { Store } from "../contract.ts";
import type { ExtendAsk } from "../extension.ts";
import type { FiguresAsk } from "../figures.ts";
import { overlay } from "../overlay.ts";
import type { CardFacts } from "../records.ts";
import type { SettleAsk } from "../settlement.ts";
import type { DaySpan } from "../sums/day-sums.ts";
import * as accounts from "./accounts.ts";
import { admit } from "./admit.ts";
import { archiveLedger, readLedger } from "./archive.ts";
import * as cards from "./cards.ts";
import * as codes from "./codes.ts";
import { confirmedWrites, confirmOn } from "./connection/confirmed.ts";
import { type Connection, connect, connectBeside, type RedisSettings } from "./connection/connect.ts";
import type { FitnessOptions } from "./connection/fitness.ts";
import { HealthCheck, identityNow } from "./connection/health.ts";
import { neededRights, Rights } from "./connection/rights.ts";
import { Runner, type StepLimits } from "./connection/runner.ts";
import { pageDays, pageUpstreamDays, readDays } from "./days.ts";
import { askEpoch, epochPartOf, epochPartsOf } from "./epoch.ts";
import { extend } from "./extend.ts";
import { listRecords, readFigures } from "./figures.ts";
import { inspect } from "./inspect.ts";
import { accountKey } from "./keys.ts";
import { readLimits } from "./limits.ts";
import { pageMarks } from "./marks.ts";
import { loadScripts, type Scripts } from "./scripts.ts";
import { settle } from "./settle.ts";

/** Connects to Redis. Resolves even when Redis is away (it is looked for in the background); `check` tells. */
export async function openRedis(settings: RedisSettings, limits: StepLimits, fitness: FitnessOptions): Promise<Store> {
  const scripts = loadScripts();
  const connection = await connect(settings, limits.tryMs, (error) => fitness.warn(`Redis: ${error.message}`));
  const sharded = settings.kind === "redis-cluster";
  const runnerOn = (open: Connection) =>
    new Runner(open, limits, new Rights(open, neededRights(scripts, sharded), scripts.rights));
  const runner = runnerOn(connection);
  const beside = () => runnerOn(connectBeside(settings, limits.tryMs));
  return new RedisStore({ runner, scripts, fitness, parts: epochPartsOf(sharded), beside });
}

interface RedisStoreParts {
  readonly runner: Runner;
  readonly scripts: Scripts;
  readonly fitness: FitnessOptions;
  /** Parts that can lose their data each by itself. */
  readonly parts: number;
  /** Opens a connection for operators' writes; undefined for the store that has it. */
  readonly beside: (() => Runner) | undefined;
}

class RedisStore implements Store {
  readonly #runner: Runner;
  readonly #scripts: Scripts;
  readonly #fitness: FitnessOptions;
  readonly #health: HealthCheck;
  readonly #beside: (() => Runner) | undefined;
  readonly epochParts: number;
  #confirming: { readonly runner: Runner; readonly store: Store } | undefined;

  constructor({ runner, scripts, fitness, parts, beside }: RedisStoreParts) {
    this.epochParts = parts;
    this.#runner = runner;
    this.#scripts = scripts;
    this.#fitness = fitness;
    this.#health = new HealthCheck(runner, fitness);
    this.#beside = beside;
  }

  async admit(ask: AdmitAsk) {
    checkAdmit(ask);
    return admit(this.#runner, this.#scripts, ask);
  }

  async extend(ask: ExtendAsk) {
    checkExtend(ask);
    return extend(this.#runner, this.#scripts, ask);
  }

  async settle(ask: SettleAsk) {
    checkSettle(ask);
    return settle(this.#runner, this.#scripts, ask);
  }

  async readKey(tag: AccountTag, hash: KeyHash) {
    checkTag(tag);
    checkKeyHash(hash);
    return accounts.readKey(this.#runner, this.#scripts, tag, hash);
  }

  async readLimits(tag: AccountTag, scope: string) {
    checkTag(tag);
    return readLimits(this.#runner, this.#scripts, tag, scope);
  }

  async createAccount(account: { tag: AccountTag; name: string; plan: string }) {
    checkTag(account.tag);
    checkName(account.name, "an account name");
    checkName(account.plan, "a plan");
    return accounts.createAccount(this.#runner, this.#scripts, account);
  }

  async getAccount(tag: AccountTag) {
    checkTag(tag);
    return accounts.getAccount(this.#runner, this.#scripts, tag);
  }

  async findAccount(name: string) {
    return accounts.findAccount(this.#runner, name);
  }

  async findAccountName(name: string) {
    return accounts.findAccountName(this.#runner, name);
  }

  async listAccountNames(cursor: string | undefined, limit: number) {
    return accounts.listAccountNames(this.#runner, cursor, limit);
  }

  async listAccounts(cursor: string | undefined, limit: number) {
    return accounts.listAccounts(this.#runner, cursor, limit);
  }

  async setPlan(tag: AccountTag, plan: string, revision?: number) {
    checkTag(tag);
    checkName(plan, "a plan");
    return accounts.setPlan(this.#runner, this.#scripts, tag, plan, revision);
  }

  async createKey(tag: AccountTag, key: { id: string; hash: KeyHash; group: string }) {
    checkTag(tag);
    checkKeyHash(key.hash);
    checkName(key.id, "a key id");
    checkName(key.group, "a group");
    return accounts.createKey(this.#runner, this.#scripts, tag, key);
  }

  async listKeys(tag: AccountTag) {
    checkTag(tag);
    return accounts.listKeys(this.#runner, tag);
  }

  async setKeyGroup(tag: AccountTag, keyId: string, group: string, revision?: number) {
    checkTag(tag);
    checkName(group, "a group");
    return accounts.changeKey(this.#runner, this.#scripts, tag, keyId, group, revision);
  }

  async revokeKey(tag: AccountTag, keyId: string, revision?: number) {
    checkTag(tag);
    return accounts.changeKey(this.#runner, this.#scripts, tag, keyId, "", revision);
  }

  async credit(tag: AccountTag, payment: Parameters<Store["credit"]>[1]) {
    checkTag(tag);
    checkCredit(payment);
    return accounts.credit(this.#runner, this.#scripts, tag, payment);
  }

  async grant(tag: AccountTag, entitlement: Parameters<Store["grant"]>[1]) {
    checkTag(tag);
    checkGrant(entitlement);
    return cards.grant(this.#runner, this.#scripts, tag, entitlement);
  }

  async listCards(tag: AccountTag) {
    checkTag(tag);
    return cards.listCards(this.#runner, this.#scripts, tag);
  }

  async createCodes(facts: CardFacts, made: Parameters<Store["createCodes"]>[1]) {
    checkCodes(facts, made);
    return codes.createCodes(this.#runner, this.#scripts, facts, made);
  }

  async listCodes(cursor: string | undefined, limit: number) {
    return codes.listCodes(this.#runner, cursor, limit);
  }

  async getCode(id: string) {
    return codes.getCode(this.#runner, id);
  }

  async voidCode(id: string) {
    return codes.voidCode(this.#runner, this.#scripts, id, this.#confirm());
  }

  async redeem(ask: Parameters<Store["redeem"]>[0]) {
    checkTag(ask.tag);
    checkCodeHash(ask.hash);
    return codes.redeem(this.#runner, this.#scripts, ask, this.#confirm());
  }

  async finishClaims(limit: number, onFinished?: Parameters<Store["finishClaims"]>[1]) {
    return codes.finishClaims(this.#runner, this.#scripts, limit, onFinished);
  }

  async readDays(tag: AccountTag, since: string, until: string) {
    checkTag(tag);
    return readDays(this.#runner, this.#scripts, tag, { since, until });
  }

  async pageDays(tag: AccountTag, span: DaySpan, cursor: string | undefined) {
    checkTag(tag);
    return pageDays(this.#runner, this.#scripts, tag, span, cursor);
  }

  async pageUpstreamDays(tag: AccountTag, span: DaySpan, cursor: string | undefined) {
    checkTag(tag);
    return pageUpstreamDays(this.#runner, this.#scripts, tag, span, cursor);
  }

  async readFigures(tag: AccountTag, ask: FiguresAsk) {
    checkTag(tag);
    checkFigures(ask);
    return readFigures(this.#runner, this.#scripts, tag, ask);
  }

  async pageMarks(tag: AccountTag | undefined, cursor: string | undefined) {
    if (tag !== undefined) checkTag(tag);
    return pageMarks(this.#runner, this.#scripts, tag, cursor);
  }

  async listRecords(tag: AccountTag, cursor: string | undefined) {
    checkTag(tag);
    return listRecords(this.#runner, tag, cursor);
  }

  async readLedger(tag: AccountTag, afterSeq: number, limit: number) {
    checkTag(tag);
    return readLedger(this.#runner, tag, afterSeq, limit);
  }

  async archiveLedger(tag: AccountTag, ask: Parameters<Store["archiveLedger"]>[1]) {
    checkTag(tag);
    checkArchive(ask);
    return archiveLedger(this.#runner, this.#scripts, tag, ask);
  }

  async inspect(tag: AccountTag) {
    checkTag(tag);
    return inspect(this.#runner, tag);
  }

  async identity() {
    return identityNow(this.#runner);
  }

  epochPartOf(tag: AccountTag) {
    return epochPartOf(tag, this.epochParts);
  }

  async countEpoch(part: number, known: { id: string; countMin: number } | undefined, fresh: string) {
    const values = known ? [known.id, `${known.countMin}`, ""] : ["", "0", fresh];
    return askEpoch(this.#runner, this.#scripts, part, ["count", ...values]);
  }

  async stopEpoch(part: number, id: string) {
    await askEpoch(this.#runner, this.#scripts, part, ["stop", id]);
  }

  async renewEpoch(part: number, from: string | undefined, to: { id: string; past: readonly string[] }) {
    return askEpoch(this.#runner, this.#scripts, part, ["renew", from ?? "", to.id, to.past.join(",")]);
  }

  confirming(): Store {
    if (!this.#beside) return this;
    this.#confirming ??= this.#openConfirming(this.#beside());
    return this.#confirming.store;
  }

  /** For writes of several steps; undefined where no replica is waited for. */
  #confirm() {
    return this.#beside ? undefined : confirmOn(this.#runner.connection);
  }

  #openConfirming(runner: Runner): { runner: Runner; store: Store } {
    const [scripts, fitness] = [this.#scripts, this.#fitness];
    const store = new RedisStore({ runner, scripts, fitness, parts: this.epochParts, beside: undefined });
    return { runner, store: overlay(store, confirmedWrites(store, runner.connection)) };
  }

  async check() {
    await this.#health.check();
  }

  shardOf(tag: AccountTag) {
    return this.#runner.connection.nodeOf(accountKey(tag));
  }

  async close() {
    this.#runner.connection.close();
    this.#confirming?.runner.connection.close();
  }
}
