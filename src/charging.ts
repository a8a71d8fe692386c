/**
 * Everything between the end of a request and its line in the ledger, built and taken down together: journal, dead
 * letters, settlement, what an earlier process left, and the verification of what the store has acknowledged.
 */
import { type ReplayStore, replay } from "./replayed-writes.ts";
import type { DeadLetter } from "./settle/journal/dead-letters.ts";
import { openDeadLetters } from "./settle/journal/dead-letters.ts";
import { openJournal } from "./settle/journal/open.ts";
import { createVerifier } from "./settle/journal/verify.ts";
import type { AdminRecord, Journal } from "./settle/journal.ts";
import { recover } from "./settle/recovery.ts";
import { createSettler, type Settler } from "./settle/settler.ts";
import type { Store } from "./store/contract.ts";
import type { SettleAnswer, SettleAsk } from "./store/settlement.ts";
import type { Log } from "./telemetry/log.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import type { JournalSettings } from "./values/settings.ts";
import type { Clock } from "./values/time.ts";

const MS_PER_S = 1_000;

export interface ChargingParts {
  readonly settings: JournalSettings;
  readonly store: ReplayStore & Pick<Store, "settle" | "identity">;
  /** Whether accounts are on several servers, each with a history of its own. */
  readonly sharded: boolean;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface Charging {
  readonly journal: Journal;
  readonly settler: Settler;
  /** Why no request may be admitted for the journal's sake; empty while all is well. */
  reasons(): string[];
  /** Brings the gauges up to date. */
  measure(): void;
  /** Resolves when everything is settled or `withinMs` is over; what neither disk nor store has goes to the log. */
  drain(withinMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Takes the journal's folder. @throws JournalLockedError when another process has it, or as the file system does. */
export async function openCharging(parts: ChargingParts): Promise<Charging> {
  const { settings, store, clock, metrics, log } = parts;
  const alarm = (message: string, error?: unknown) => log.error({ reason: reasonOf(error) }, message);
  const { journal, log: records, leftovers, disk } = await openJournal(settings, { clock, alarm });
  const onLetter = (letter: DeadLetter) => log.error(factsOf(letter), "the store does not take a charge: dead letter");
  const deadLetters = await openDeadLetters(disk, clock, onLetter).catch(async (error) => {
    await journal.close();
    throw error;
  });
  const settler = createSettler({
    store,
    journal,
    deadLetters,
    clock,
    onSettled: (ask, answer) => settled(ask, answer, metrics),
    onDelay: (error) => log.warn({ reason: reasonOf(error) }, "a settlement waits for the store"),
    onUnrecorded: (ask, error) =>
      log.error(
        { request: ask.requestId, reason: reasonOf(error) },
        "a charge is not in the journal; the store is asked",
      ),
  });
  const verifier = createVerifier({
    log: records,
    store,
    clock,
    deadLetters,
    storeIdentity: () => store.identity(),
    // Each account counts as a history of its own, so that the walk goes through all that is kept.
    ...(parts.sharded ? { shardOf: (tag: string) => tag } : {}),
    async applyAdmin(record) {
      const problem = await replay(record, store);
      if (problem !== undefined) log.error(factsOfWrite(record, problem), "the store does not take a write again");
    },
    onRestored(ask, answer) {
      metrics.restoredCharges.inc();
      settled(ask, answer, metrics);
      log.warn({ request: ask.requestId }, "the store had lost a charge and has it again");
    },
    onIdentity: (before, now) =>
      log.warn({ before, now }, "another server answers for the store; what it lacks is sent"),
    onFollowed: (identity) => log.info({ store: identity }, "the journal follows this store"),
    onError: (error) => log.warn({ reason: reasonOf(error) }, "verification waits"),
  });
  if (leftovers.length > 0) {
    log.warn({ charges: leftovers.length }, "settling what the last process left");
    void recover(leftovers, settler).then(() => log.info({}, "what the last process left is settled"));
  }
  verifier.start();
  return {
    journal,
    settler,
    reasons() {
      const { reason } = journal.health();
      return reason === undefined ? [] : [reason];
    },
    measure() {
      const { unsettled, oldestUnsettledMs, fillRatio } = journal.health();
      metrics.journalUnsettled.set(unsettled);
      metrics.journalOldest.set(oldestUnsettledMs / MS_PER_S);
      metrics.journalFill.set(fillRatio);
      metrics.deadLetters.set(deadLetters.count());
      metrics.unrecordedCharges.set(settler.unrecorded().length);
    },
    async drain(withinMs) {
      await settler.drain(withinMs);
      for (const ask of settler.unrecorded()) {
        const facts = { ...ask, amount: String(ask.amount), absorbed: String(ask.absorbed) };
        log.error({ charge: facts }, "this charge is recorded nowhere but here");
      }
    },
    async close() {
      await verifier.stop();
      await journal.close();
    },
  };
}

/** Money for the metrics. */
function settled(ask: SettleAsk, answer: SettleAnswer, metrics: Metrics): void {
  if (answer.outcome !== "settled") return;
  const { group, model } = ask;
  const upstream = ask.upstream ?? "none";
  metrics.addUsd(metrics.spend, { group, model }, answer.charged);
  metrics.addUsd(metrics.absorbed, { group, upstream, cause: "over_hold" }, answer.absorbed);
  metrics.addUsd(metrics.absorbed, { group, upstream, cause: ask.absorbedCause ?? "none" }, ask.absorbed);
}

function factsOf({ ask, reason, detail }: DeadLetter): object {
  return { request: ask.requestId, reason, detail, amount_nano_usd: String(ask.amount) };
}

function factsOfWrite({ kind, id }: AdminRecord, problem: string): object {
  return { write: kind, id, problem };
}

function reasonOf(error: unknown): string | undefined {
  return error instanceof Error ? (error.stack ?? error.message) : error === undefined ? undefined : String(error);
}
