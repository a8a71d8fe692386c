/**
 * Builds and closes everything between the end of a request and its line in the ledger: journal, dead letters,
 * settlement, recovery of what an earlier process left, and verification of what the store has acknowledged.
 */

import { randomBytes } from "node:crypto";
import { type Store, StoreError, StoreUnreachableError } from "../../store/contract.ts";
import type { ComposedStore } from "../../store/middleware/compose.ts";
import type { Gate } from "../../store/middleware/gate.ts";
import { chargedInstead, type SettleAnswer, type SettleAsk } from "../../store/settlement.ts";
import { type Log, withoutRepeats } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AccountTag } from "../../values/key.ts";
import { errorStack } from "../../values/program/error-text.ts";
import { COMMAND } from "../../values/program/program.ts";
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

/* Reasons of readiness. Each begins with a name that does not change. */
const OLDER =
  "store_older: the store lost data, and nothing is admitted until its data is back or you accept the loss; " +
  `to see what differs, run ${COMMAND} store status`;
const RESTORING = "store_restoring: the journal is sending what the store has lost; requests are admitted after that";

export interface ChargingParts {
  readonly settings: JournalSettings;
  readonly store: ComposedStore;
  readonly storeKind: StoreSettings["kind"];
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Called when the store is found to have lost data, and when that is over. */
  readonly onStoreOlder?: (isOlder: boolean) => void;
  /** Disk and randomness of the machine; a simulation has its own. */
  readonly machine?: ChargingMachine;
}

interface ChargingMachine {
  /** Opens the journal's folder. */
  readonly open: typeof openJournal;
  /** Where this gateway keeps what it knows of the store's history, as in `epochFile`. */
  readonly epochFile: (dir: string) => EpochFile;
  readonly random: (bytes: number) => Buffer;
  /** Between 0 and 1: jitter of retries. */
  readonly jitter: () => number;
}

const MACHINE: ChargingMachine = { open: openJournal, epochFile, random: randomBytes, jitter: Math.random };

/** How long a process that ends waits for charges that are being settled; the next start continues with the rest. */
export const SETTLE_GRACE_MS = 10_000;

export interface Charging {
  readonly journal: Journal;
  readonly settler: Settler;
  /**
   * The store for everything except charges: closed while it lacks data and while lost data is being restored to it.
   */
  readonly store: Store;
  /** The same for operators: their writes are answered when a replica has them. */
  operators(): Store;
  readonly epoch: StoreEpoch;
  /** Whether lost data is being restored to the store. */
  isRestoring(): boolean;
  /** Whether everything that earlier processes left in the journal is in the store, or is a dead letter. */
  isRecovered(): boolean;
  /** Why journal or store do not allow new requests; empty if they do. */
  reasons(): string[];
  /** Updates the gauges. */
  measure(): void;
  /**
   * Resolves when everything is settled or after `withinMs`. Charges that neither disk nor store has are then written
   * to the log.
   */
  drain(withinMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Opens the journal's folder. @throws FolderTakenError if another process has it, or the file system's error. */
export async function openCharging(parts: ChargingParts): Promise<Charging> {
  const { settings, clock, metrics, log, machine = MACHINE } = parts;
  const alarm = (message: string, error?: unknown, event?: string) =>
    log.error({ event, reason: reasonOf(error) }, message);
  const { journal, log: records, leftovers, disk } = await machine.open(settings, { clock, alarm });
  const verificationWaits = withoutRepeats(clock, (reason) => log.warn({ reason }, "verification waits"));
  const settlementWaits = withoutRepeats(clock, (reason) =>
    log.warn({ reason }, "a settlement is retried until the store accepts it"),
  );
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
  // Restored writes pass this gate while everything else still waits.
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
      // After the server's identity was read, so that nothing is restored to a server with the wrong history.
      await epoch.check();
      return [server, epoch.history(), epoch.life()].join(IDENTITY_SEPARATOR);
    },
    isWholeLoss: (before, now) => historyOf(before) !== undefined && historyOf(before) !== historyOf(now),
    isPaused: () => epoch.losses().length > 0,
    // Each account counts as a shard of its own, so that the walk goes through all records that are kept.
    ...(parts.storeKind === "redis-cluster" ? { shardOf: (tag: string) => tag } : {}),
    isEmbedded: parts.storeKind === "embedded",
    async applyAdmin(record) {
      await epoch.check();
      const notTaken = await replay(record, replayStore);
      const name = `${record.kind} ${record.id}`;
      if (notTaken?.mayPass) absences.doubt(name, notTaken.problem);
      absences.forget(name);
      if (!notTaken) return;
      log.error(factsOfWrite(record, notTaken.problem), "the store refuses a replayed write");
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
      if (error instanceof StoreUnreachableError) return;
      verificationWaits(reasonOf(error) ?? "");
    },
  });
  let isSettled = leftovers.length === 0;
  if (!isSettled) {
    log.warn({ charges: leftovers.length }, "settling what the last process left");
    void recover(leftovers, settler, (tag) => store.shardOf(tag)).then(() => {
      isSettled = true;
      log.info({}, "what the last process left is settled");
    });
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
    isRecovered: () => isSettled && verifier.hasFollowed(),
    reasons() {
      const { reason } = journal.health();
      const ofStore = epoch.losses().length > 0 ? [OLDER] : isRestoring() ? [RESTORING] : [];
      // Only until the history was read once. After that requests are admitted, and an unreadable history is no reason
      // to refuse them.
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

/** Separates the parts of a store's identity: its server, its history, and the incarnation of that history. */
const IDENTITY_SEPARATOR = "#";

function historyOf(identity: string | undefined): string | undefined {
  return identity?.split(IDENTITY_SEPARATOR)[1];
}

function gateOf(epoch: StoreEpoch, isRestoring = () => false): Gate {
  const pass = (): Promise<void> | undefined => {
    if (epoch.losses().length > 0 || isRestoring()) return Promise.reject(older());
    // Before the first check the state is unknown; the check itself rejects with the reason.
    return epoch.checked ? undefined : epoch.check().then(pass);
  };
  return { pass, recheck: (tag) => epoch.check(tag) };
}

/** Updates the money metrics. */
function settled(ask: SettleAsk, answer: SettleAnswer, metrics: Metrics): void {
  if (answer.outcome !== "settled") return;
  const { group, model } = ask;
  const upstream = ask.upstream ?? "none";
  metrics.addUsd(metrics.spend, { group, model }, answer.charged);
  metrics.addUsd(metrics.absorbed, { group, upstream, cause: "over_hold" }, answer.absorbed);
  // If the store has charged it after all, the amount charged or absorbed here is above 0.
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

/** The charge as the journal has it, with amounts as strings: numbers in a log are not exact above 2^53. */
function plainOf(ask: SettleAsk): object {
  return JSON.parse(encode(ask));
}

function factsOfWrite({ kind, id }: AdminRecord, problem: string): object {
  return { event: "write_not_taken", write: kind, id, problem };
}

/** The message of a store error says everything. Anything else is a defect and is logged with its stack. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof StoreError) return error.message;
  return error === undefined ? undefined : errorStack(error);
}

/*
 * After a crash: an orphan is charged from its last checkpoint, or voided if nothing had been produced, and every
 * charge without an ACK is sent to the store. This runs while the gateway serves; it is harmless because the store's
 * settlements are idempotent.
 */

/** Settlements that recovery sends at the same time to one server of the store. */
const AT_ONCE = 32;

/**
 * Settles what the last process left. A charge that the store refuses, or a server that does not answer, does not hold
 * up others. Resolves when the store has answered every charge, however long that takes.
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
