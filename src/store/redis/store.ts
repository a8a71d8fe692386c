/** The store on Redis: single, Sentinel or Cluster. One script and one round trip per step. */
import { type Calls, checkedCalls } from "../calls.ts";
import type { Store } from "../contract.ts";
import type { NoticeWriter } from "../notices.ts";
import { overlay } from "../overlay.ts";
import * as accounts from "./accounts.ts";
import { admit, extend } from "./admit.ts";
import { archiveLedger, readLedger } from "./archive.ts";
import * as cards from "./cards.ts";
import * as codes from "./codes.ts";
import { type Confirm, confirmedWrites, confirmOn } from "./connection/confirmed.ts";
import { connect, connectBeside, type RedisConnection, type RedisSettings, type TlsNow } from "./connection/connect.ts";
import { type FitnessOptions, HealthCheck, identityNow } from "./connection/health.ts";
import { neededRights, Rights } from "./connection/rights.ts";
import { Runner, type StepLimits } from "./connection/runner.ts";
import { pageDays, pageUpstreamDays, readDays } from "./days.ts";
import { askEpoch, epochPartOf, epochPartsOf } from "./epoch.ts";
import { listRecords, readFigures, readLimits } from "./figures.ts";
import { inspect } from "./inspect.ts";
import { accountKey } from "./keys.ts";
import { pageMarks, settledAmounts } from "./marks.ts";
import * as names from "./names.ts";
import * as notices from "./notices.ts";
import { finishClaims, redeem } from "./redemption.ts";
import { loadScripts, type Scripts } from "./scripts.ts";
import { settle } from "./settle.ts";
import * as signIns from "./sign-ins.ts";

/**
 * Connects to Redis. Resolves even when Redis is unavailable (connecting goes on in the background); `check` reports
 * the state.
 */
export async function openRedis(
  settings: RedisSettings,
  tlsNow: TlsNow,
  limits: StepLimits,
  fitness: FitnessOptions,
  onConnectionFailed: (reason: string, problem: string | undefined) => void,
  noticeWriter?: NoticeWriter,
): Promise<Store> {
  const scripts = loadScripts();
  const connection = await connect(settings, onConnectionFailed, tlsNow);
  const sharded = settings.kind === "redis-cluster";
  const runnerOn = (open: RedisConnection) =>
    new Runner(open, limits, new Rights(open, neededRights(scripts, sharded), scripts.rights));
  const runner = runnerOn(connection);
  const beside = () => runnerOn(connectBeside(settings, tlsNow, limits.tryMs));
  return redisStore({ runner, scripts, fitness, parts: epochPartsOf(sharded), beside, notices: noticeWriter });
}

interface ScriptContext {
  readonly runner: Runner;
  readonly scripts: Scripts;
  /** For the steps of one write: waits for replicas; undefined when none is waited for. Created for each write. */
  readonly confirm: () => Confirm | undefined;
  readonly notices: NoticeWriter | undefined;
}

/** Answers from the server: by a script when something is decided or written. */
const CALLS: Calls<ScriptContext> = {
  admit: ({ runner, scripts }, ask) => admit(runner, scripts, ask),
  extend: ({ runner, scripts }, ask) => extend(runner, scripts, ask),
  settle: ({ runner, scripts, notices }, ask) => settle(runner, scripts, ask, notices),
  readKey: ({ runner, scripts }, tag, hash) => accounts.readKey(runner, scripts, tag, hash),
  readLimits: ({ runner, scripts }, tag, scope) => readLimits(runner, scripts, tag, scope),
  createAccount: ({ runner, scripts }, account) => names.createAccount(runner, scripts, account),
  getAccount: ({ runner, scripts }, tag) => names.getAccount(runner, scripts, tag),
  findAccount: ({ runner }, name) => names.findAccount(runner, name),
  findAccountName: ({ runner }, name) => names.findAccountName(runner, name),
  listAccountNames: ({ runner }, cursor, limit) => names.listAccountNames(runner, cursor, limit),
  listAccounts: ({ runner }, cursor, limit) => names.listAccounts(runner, cursor, limit),
  setPlan: ({ runner, scripts }, tag, plan, revision) => accounts.setPlan(runner, scripts, tag, plan, revision),
  setAccountLimits: ({ runner, scripts }, tag, limits, revision) =>
    accounts.setAccountLimits(runner, scripts, tag, limits, revision),
  readAccountBudgets: ({ runner }, tag) => accounts.readAccountBudgets(runner, tag),
  changeAccount: ({ runner, scripts }, tag, change, revision) =>
    accounts.changeAccount(runner, scripts, tag, change, revision),
  renameAccount: ({ runner, scripts }, tag, name, revision) =>
    names.renameAccount(runner, scripts, tag, name, revision),
  closeAccount: (context, tag, revision) => accounts.closeAccount(context, tag, revision),
  createKey: ({ runner, scripts }, tag, key) => accounts.createKey(runner, scripts, tag, key),
  listKeys: ({ runner }, tag) => accounts.listKeys(runner, tag),
  setNotifyBelow: ({ runner, scripts }, tag, below, revision) =>
    accounts.setNotifyBelow(runner, scripts, tag, below, revision),
  changeKey: (context, tag, keyId, change, revision) => accounts.changeKey(context, tag, keyId, change, revision),
  noteKeyUses: ({ runner, scripts }, tag, uses) => accounts.noteKeyUses(runner, scripts, tag, uses),
  rotateKey: ({ runner, scripts }, tag, keyId, rotation, revision) =>
    accounts.rotateKey(runner, scripts, tag, keyId, rotation, revision),
  revokeKey: (context, tag, keyId, revision) =>
    accounts.changeKey(context, tag, keyId, { status: "revoked" }, revision),
  credit: (context, tag, payment) => accounts.credit(context, tag, payment),
  grant: ({ runner, scripts }, tag, entitlement) => cards.grant(runner, scripts, tag, entitlement),
  listCards: ({ runner, scripts }, tag, ended) => cards.listCards(runner, scripts, tag, ended),
  createCodes: ({ runner, scripts }, ...ask) => codes.createCodes(runner, scripts, ...ask),
  listCodes: ({ runner }, cursor, limit) => codes.listCodes(runner, cursor, limit),
  getCode: ({ runner }, id) => codes.getCode(runner, id),
  getBatch: ({ runner }, id) => codes.getBatch(runner, id),
  listBatches: ({ runner }, cursor, limit) => codes.listBatches(runner, cursor, limit),
  listBatchCodes: ({ runner }, batch, cursor, limit) => codes.listBatchCodes(runner, batch, cursor, limit),
  voidCode: ({ runner, scripts, confirm }, id) => codes.voidCode(runner, scripts, id, confirm()),
  voidCodes: ({ runner, scripts, confirm }, ids) => codes.voidCodes(runner, scripts, ids, confirm()),
  redeem: ({ runner, scripts, confirm }, ask) => redeem(runner, scripts, ask, confirm()),
  finishClaims: ({ runner, scripts }, limit, onFinished) => finishClaims(runner, scripts, limit, onFinished),
  readDays: ({ runner, scripts }, tag, since, until) => readDays(runner, scripts, tag, { since, until }),
  pageDays: ({ runner, scripts }, tag, span, cursor) => pageDays(runner, scripts, tag, span, cursor),
  pageUpstreamDays: ({ runner, scripts }, tag, span, cursor) => pageUpstreamDays(runner, scripts, tag, span, cursor),
  readFigures: ({ runner, scripts }, tag, ask) => readFigures(runner, scripts, tag, ask),
  listRecords: ({ runner }, tag, cursor) => listRecords(runner, tag, cursor),
  settledAmounts: ({ runner, scripts }, tag, ids) => settledAmounts(runner, scripts, tag, ids),
  pageMarks: ({ runner, scripts }, tag, cursor) => pageMarks(runner, scripts, tag, cursor),
  readLedger: ({ runner }, tag, afterSeq, limit) => readLedger(runner, tag, afterSeq, limit),
  archiveLedger: ({ runner, scripts }, tag, ask) => archiveLedger(runner, scripts, tag, ask),
  addNotice: (context, outbox, notice, once) => notices.addNotice(context, outbox, notice, once),
  readNotices: ({ runner, scripts }, outbox, limit) => notices.readNotices(runner, scripts, outbox, limit),
  takeNotice: ({ runner, scripts }, outbox, seq) => notices.takeNotice(runner, scripts, outbox, seq),
  pageNotices: ({ runner }, cursor, limit) => notices.pageNotices(runner, cursor, limit),
  leaseNotices: ({ runner, scripts }, lease) => notices.leaseNotices(runner, scripts, lease),
  keepSignIn: ({ runner, scripts }, ...ask) => signIns.keepSignIn(runner, scripts, ...ask),
  takeSignIn: ({ runner, scripts }, ...ask) => signIns.takeSignIn(runner, scripts, ...ask),
  findSignIn: ({ runner, scripts }, ...ask) => signIns.findSignIn(runner, scripts, ...ask),
  listSignIns: ({ runner, scripts }, owner) => signIns.listSignIns(runner, scripts, owner),
  dropSignIn: ({ runner, scripts }, ...ask) => signIns.dropSignIn(runner, scripts, ...ask),
  dropSignIns: ({ runner, scripts }, ...ask) => signIns.dropSignIns(runner, scripts, ...ask),
  inspect: ({ runner }, tag) => inspect(runner, tag),
  countEpoch({ runner, scripts }, part, known, fresh) {
    const values = known ? [known.id, `${known.countMin}`, ""] : ["", "0", fresh];
    return askEpoch(runner, scripts, part, ["count", ...values]);
  },
  async stopEpoch({ runner, scripts }, part, id) {
    await askEpoch(runner, scripts, part, ["stop", id]);
  },
  renewEpoch: ({ runner, scripts }, part, from, to) =>
    askEpoch(runner, scripts, part, ["renew", from ?? "", to.id, to.past.join(",")]),
};

interface RedisStoreParts {
  readonly runner: Runner;
  readonly scripts: Scripts;
  readonly fitness: FitnessOptions;
  /** The number of parts that can lose their data independently. */
  readonly parts: number;
  /** Opens a connection for operators' writes; undefined in the store that has it. */
  readonly beside: (() => Runner) | undefined;
  /** Undefined: no notices are written. */
  readonly notices: NoticeWriter | undefined;
}

function redisStore({ beside, ...shared }: RedisStoreParts): Store {
  const { runner, scripts, fitness, parts, notices: noticeWriter } = shared;
  const health = new HealthCheck(runner, scripts, fitness);
  const context: ScriptContext = {
    runner,
    scripts,
    confirm: () => (beside ? undefined : confirmOn(runner.connection)),
    notices: noticeWriter,
  };
  let confirming: { readonly runner: Runner; readonly store: Store } | undefined;
  const openConfirming = (own: Runner) => {
    const one = redisStore({ ...shared, runner: own, beside: undefined });
    return { runner: own, store: overlay(one, confirmedWrites(one, own.connection)) };
  };
  const store: Store = {
    ...checkedCalls(CALLS, (work) => work(context)),
    identity: () => identityNow(runner),
    epochParts: parts,
    epochPartOf: (tag) => epochPartOf(tag, parts),
    confirming() {
      if (!beside) return store;
      confirming ??= openConfirming(beside());
      return confirming.store;
    },
    check: () => health.check(),
    shardOf: (tag) => runner.connection.nodeOf(accountKey(tag)),
    async close() {
      runner.connection.close();
      confirming?.runner.connection.close();
    },
  };
  return store;
}
