/**
 * Everything between the end of a request and its line in the ledger, built and taken down together: journal, dead
 * letters, settlement, what an earlier process left, and the verification of what the store has acknowledged.
 */

import { randomBytes } from "node:crypto";
import { type Store, StoreAwayError, StoreError } from "../../store/contract.ts";
import type { ComposedStore } from "../../store/middleware/compose.ts";
import type { Gate } from "../../store/middleware/gate.ts";
import { chargedInstead, type SettleAnswer, type SettleAsk } from "../../store/settlement.ts";
import { type Log, sparingly } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AccountTag } from "../../values/key.ts";
import { errorStack } from "../../values/program/error-text.ts";
import type { JournalSettings, StoreSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { type DeadLetter, openDeadLetters, whoseCharge } from "../journal/dead-letters.ts";
import { openJournal } from "../journal/open.ts";
import { encode } from "../journal/payload.ts";
import type { Leftover } from "../journal/startup.ts";
import { createVerifier } from "../journal/verify.ts";
import type { AdminRecord, Journal } from "../journal.ts";
import { createSettler, type Settler } from "../settler.ts";
import { Absences } from "./absences.ts";
import { older, openStoreEpoch, type StoreEpoch } from "./epoch.ts";
import { type EpochFile, epochFile } from "./epoch-file.ts";
import { replay } from "./replayed-writes.ts";

const MS_PER_S = 1_000;

export interface ChargingParts {
  readonly settings: JournalSettings;
  readonly store: ComposedStore;
  readonly storeKind: StoreSettings["kind"];
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Called when the store is found to have lost data, and when that is over. */
  readonly onStoreOlder?: (isOlder: boolean) => void;
  /** What the machine gives; a simulation has a disk and chances of its own. */
  readonly machine?: ChargingMachine;
}

interface ChargingMachine {
  /** Takes the journal's folder. */
  readonly open: typeof openJournal;
  /** Where the mark is kept that the store had, as in `epochFile`. */
  readonly epochFile: (dir: string) => EpochFile;
  readonly random: (bytes: number) => Buffer;
  /** Between 0 and 1: how retries spread. */
  readonly jitter: () => number;
}

const MACHINE: ChargingMachine = { open: openJournal, epochFile, random: randomBytes, jitter: Math.random };

/** How long a process that ends waits for charges that the store is asked to take; the next start goes on with what is left. */
export const SETTLE_GRACE_MS = 10_000;

export interface Charging {
  readonly journal: Journal;
  readonly settler: Settler;
  /** The store for everything but charges: shut while it lacks data, and while it is given back what it lost. */
  readonly store: Store;
  /** The same for operators: their writes are answered when a replica has them. */
  operators(): Store;
  readonly epoch: StoreEpoch;
  /** Whether the store is being given back what it lost. */
  isRestoring(): boolean;
  /** Why no request may be admitted for the journal's sake; empty while all is well. */
  reasons(): string[];
  /** Brings the gauges up to date. */
  measure(): void;
  /** Resolves when everything is settled or `withinMs` is over; what neither disk nor store has goes to the log. */
  drain(withinMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Takes the journal's folder. @throws FolderTakenError when another process has it, or as the file system does. */
export async function openCharging(parts: ChargingParts): Promise<Charging> {
  const { settings, clock, metrics, log, machine = MACHINE } = parts;
  const alarm = (message: string, error?: unknown, event?: string) =>
    log.error({ event, reason: reasonOf(error) }, message);
  const { journal, log: records, leftovers, disk } = await machine.open(settings, { clock, alarm });
  const verificationWaits = sparingly(clock, (reason) => log.warn({ reason }, "verification waits"));
  const settlementWaits = sparingly(clock, (reason) => log.warn({ reason }, "a settlement waits for the store"));
  const onLetter = (letter: DeadLetter, hasRoom: boolean) =>
    log.error(
      { ...factsOf(letter), ...(hasRoom ? {} : { charge: plainOf(letter.ask) }) },
      "the store does not take a charge: dead letter",
    );
  const deadLetters = await openDeadLetters(disk, clock, onLetter).catch(async (error) => {
    await journal.close();
    throw error;
  });
  const epoch = await openStoreEpoch({
    store: parts.store.store,
    file: machine.epochFile(settings.dir),
    clock,
    log,
    random: machine.random,
    onChange(stopped) {
      metrics.storeOlder.set(stopped ? 1 : 0);
      parts.onStoreOlder?.(stopped);
    },
  }).catch(async (error) => {
    await journal.close();
    throw error;
  });
  let followed = historyOf(records.progress.identity);
  const isRestoring = () => followed !== undefined && followed !== epoch.history();
  const gate = gateOf(epoch, isRestoring);
  const store = parts.store.behind(gate);
  // What is given back goes through while all else still waits.
  const replayStore = parts.store.behind(gateOf(epoch));
  const absences = new Absences(clock);
  const settler = createSettler({
    store,
    absences,
    random: machine.jitter,
    async restored() {
      if (!(await verifier.freshRound())) throw new StoreError("unavailable", "what the store lost is not back yet");
    },
    journal,
    deadLetters,
    clock,
    onSettled: (ask, answer) => settled(ask, answer, metrics),
    onDelay: (error) => settlementWaits(reasonOf(error) ?? ""),
    onUnrecorded: (ask, error) =>
      log.error(
        { event: "charge_unjournaled", ...whoseCharge(ask), reason: reasonOf(error) },
        "a charge is not in the journal; the store is asked",
      ),
  });
  const verifier = createVerifier({
    log: records,
    store: replayStore,
    absences,
    clock,
    deadLetters,
    async storeIdentity() {
      const server = await parts.store.store.identity();
      // After the server's name, so that nothing is given back to a server that must not have it.
      await epoch.check();
      return [server, epoch.history(), epoch.life()].join(IDENTITY_SEPARATOR);
    },
    isWholeLoss: (before, now) => historyOf(before) !== undefined && historyOf(before) !== historyOf(now),
    isPaused: () => epoch.losses().length > 0,
    // Each account counts as a history of its own, so that the walk goes through all that is kept.
    ...(parts.storeKind === "redis-cluster" ? { shardOf: (tag: string) => tag } : {}),
    isEmbedded: parts.storeKind === "embedded",
    async applyAdmin(record) {
      await epoch.check();
      const notTaken = await replay(record, replayStore);
      const name = `${record.kind} ${record.id}`;
      if (notTaken?.mayPass) absences.doubt(name, notTaken.problem);
      absences.forget(name);
      if (!notTaken) return;
      log.error(factsOfWrite(record, notTaken.problem), "the store does not take a write again");
    },
    onRestored(ask, answer) {
      metrics.restoredCharges.inc({});
      settled(ask, answer, metrics);
      log.warn({ event: "charge_restored", ...whoseCharge(ask) }, "the store had lost a charge and has it again");
    },
    onIdentity: (before, now) =>
      log.warn({ before, now }, "another server answers for the store; what it lacks is sent"),
    onAside: ({ message }) => verificationWaits(message),
    onFollowed(identity) {
      followed = historyOf(identity);
      log.info({ store: identity }, "the journal follows this store");
    },
    onError(error) {
      if (error instanceof StoreAwayError) return;
      verificationWaits(reasonOf(error) ?? "");
    },
  });
  if (leftovers.length > 0) {
    log.warn({ charges: leftovers.length }, "settling what the last process left");
    void recover(leftovers, settler, (tag) => store.shardOf(tag)).then(() =>
      log.info({}, "what the last process left is settled"),
    );
  }
  epoch.start();
  verifier.start();
  return {
    journal,
    settler,
    store,
    operators: () => parts.store.confirming(gate),
    epoch,
    isRestoring,
    reasons() {
      const { reason } = journal.health();
      const ofStore = epoch.losses().length > 0 ? ["store_older"] : isRestoring() ? ["store_restoring"] : [];
      // Once it was seen, requests are admitted: what has happened to it since is no reason to send them elsewhere.
      const unreadable = epoch.checked ? undefined : epoch.unreadable();
      return [...ofStore, unreadable, reason].filter((one) => one !== undefined);
    },
    measure() {
      const { unsettled, oldestUnsettledMs, fillRatio } = journal.health();
      metrics.journalUnsettled.set(unsettled);
      metrics.journalOldest.set(oldestUnsettledMs / MS_PER_S);
      metrics.journalFill.set(fillRatio);
      metrics.deadLetters.set(deadLetters.count());
      metrics.unverifiedCharges.set(verifier.waiting());
      metrics.unrecordedCharges.set(settler.unrecorded().length);
    },
    async drain(withinMs) {
      await settler.drain(withinMs);
      for (const ask of settler.unrecorded())
        log.error({ ...whoseCharge(ask), charge: plainOf(ask) }, "this charge is recorded nowhere but here");
    },
    async close() {
      await verifier.stop();
      await epoch.stop();
      await journal.close();
    },
  };
}

/** Between what names a store's server, its history, and the life of that history. */
const IDENTITY_SEPARATOR = "#";

function historyOf(identity: string | undefined): string | undefined {
  return identity?.split(IDENTITY_SEPARATOR)[1];
}

function gateOf(epoch: StoreEpoch, isRestoring = () => false): Gate {
  const pass = (): Promise<void> | undefined => {
    if (epoch.losses().length > 0 || isRestoring()) return Promise.reject(older());
    // Until the first look nobody knows; the look itself says why not.
    return epoch.checked ? undefined : epoch.check().then(pass);
  };
  return { pass, recheck: (tag) => epoch.check(tag) };
}

/** Money for the metrics. */
function settled(ask: SettleAsk, answer: SettleAnswer, metrics: Metrics): void {
  if (answer.outcome !== "settled") return;
  const { group, model } = ask;
  const upstream = ask.upstream ?? "none";
  metrics.addUsd(metrics.spend, { group, model }, answer.charged);
  metrics.addUsd(metrics.absorbed, { group, upstream, cause: "over_hold" }, answer.absorbed);
  // Charged or absorbed, what has left unpaid is above 0 in one of the two.
  const { leftUnpaid } = ask;
  const isCharged = leftUnpaid !== undefined && answer.charged + answer.absorbed > 0n;
  if (leftUnpaid) metrics.leftUnpaid.inc({ group, paid_by: isCharged ? "client" : "absorbed" });
  const { absorbed, costs = [] } = isCharged ? chargedInstead(ask, leftUnpaid) : ask;
  metrics.addUsd(metrics.absorbed, { group, upstream, cause: ask.absorbedCause ?? "none" }, absorbed);
  for (const { upstream: billing, cost } of costs) {
    metrics.addUsd(metrics.cost, { group, model, upstream: billing }, cost);
  }
  for (const { upstream: tried, cause, amount } of ask.attempts ?? []) {
    metrics.addUsd(metrics.absorbed, { group, upstream: tried, cause }, amount);
  }
}

function factsOf({ ask, reason, detail }: DeadLetter): object {
  return { event: "dead_letter", ...whoseCharge(ask), reason, detail, amount_nano_usd: String(ask.amount) };
}

/** The charge as the journal has it, amounts as texts: a log's numbers are not exact beyond 2^53. */
function plainOf(ask: SettleAsk): object {
  return JSON.parse(encode(ask));
}

function factsOfWrite({ kind, id }: AdminRecord, problem: string): object {
  return { event: "write_not_taken", write: kind, id, problem };
}

/** The store's own errors say all in their message; anything else is a defect, and its stack is wanted. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof StoreError) return error.message;
  return error === undefined ? undefined : errorStack(error);
}

/*
 * After a crash: an orphan is charged from its last checkpoint, or voided when nothing had been produced, and every
 * charge without an ACK is sent to the store. Runs while the gateway serves; the store's idempotence makes it harmless.
 */

/** Settlements that recovery has under way at one time to one server of the store. */
const AT_ONCE = 32;

/**
 * A charge that the store refuses, and a server that does not answer, hold up no other. Resolves when the store has answered
 * every one of them, however long that takes.
 * @param shardOf which server has an account.
 */
export async function recover(
  leftovers: readonly Leftover[],
  settler: Pick<Settler, "resume">,
  shardOf: (tag: AccountTag) => string,
): Promise<void> {
  const answers: Promise<void>[] = [];
  const worker = async (queue: Iterator<Leftover>): Promise<void> => {
    for (let next = queue.next(); !next.done; next = queue.next()) {
      const { passed, answered } = settler.resume(next.value);
      answers.push(answered);
      await passed;
    }
  };
  const queues = [...Map.groupBy(leftovers, ({ ask }) => shardOf(ask.tag)).values()].map((some) => some.values());
  await Promise.all(queues.flatMap((queue) => Array.from({ length: AT_ONCE }, () => worker(queue))));
  await Promise.all(answers);
}
