/**
 * Opens everything that keeps money and maintains it: the store with its middleware, the journal with settlement and
 * recovery, and the notices that wait in the store. `pipeline.ts` and `gateway.ts` build everything else on top.
 */
import { randomBytes } from "node:crypto";
import { Notices } from "./notices/notices.ts";
import { journaledStore } from "./settle/journal/journaled-store.ts";
import { type Charging, openCharging } from "./settle/recovery/charging.ts";
import { takeOverJournals } from "./settle/recovery/orphan-journals.ts";
import type { Store } from "./store/contract.ts";
import { composeStore } from "./store/middleware/compose.ts";
import { type OpenOptions, openStore } from "./store/open.ts";
import { sweepClaims } from "./store/upkeep/claim-sweeper.ts";
import { demandFitness, watchHealth } from "./store/upkeep/health.ts";
import { watchLedger } from "./store/upkeep/ledger-watch.ts";
import { OutageLog } from "./store/upkeep/outage-log.ts";
import type { Log } from "./telemetry/log.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import type { ClosingStep } from "./values/program/closing.ts";
import { errorStack } from "./values/program/error-text.ts";
import type { Settings, StoreSettings } from "./values/settings.ts";
import type { Clock } from "./values/time.ts";

interface BooksParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Which side this process serves if a gateway has several processes; default: both. */
  readonly serves?: "clients" | "operators" | undefined;
  /** Timeouts for steps on Redis, if they differ from the defaults. */
  readonly storeTimes?: Pick<OpenOptions, "commandTimeoutMs" | "stepTimeoutMs"> | undefined;
  /** The store settings in force, which have the newest certificates. */
  readonly storeNow: () => StoreSettings;
  /** The number of the configuration in force, for notices. */
  readonly generation: () => number;
}

export interface Books {
  /** The store with its middleware, without the gate (store/middleware/gate.ts). */
  readonly store: Store;
  readonly charging: Charging;
  readonly notices: Notices;
  /** A store whose writes also go to the journal. */
  journaled(open: Store): Store;
  /** Why no request can be served; empty if there is no reason. */
  reasons(): string[];
  /** Why a store that answers must not be used; undefined while no problem is known. */
  storeUnfit(): string | undefined;
  /** What is wrong with a store that does not answer, in the words of `reasons`. */
  storeAway(): string;
}

/**
 * Opens the store, the journal and the notices, and starts their background work.
 * @param opened receives a closing step for each part, in the order of opening.
 * @throws an error with the reason if the store cannot be used or another process has the journal.
 */
export async function openBooks(parts: BooksParts, opened: ClosingStep[]): Promise<Books> {
  const { settings, clock, metrics, log, serves, storeTimes, storeNow, generation } = parts;
  const outages = new OutageLog(clock, log);
  const notices = new Notices({
    settings: settings.notices,
    delivers: serves !== "clients",
    generation,
    clock,
    metrics,
    log,
    random: randomBytes,
    jitter: Math.random,
    fetch,
  });
  let recovering: Charging | undefined;
  const bare = await openStore(settings.store, {
    warn: (message) => log.warn({}, message),
    onConnectionFailed: (reason, problem) => outages.connectionFailed(reason, problem),
    notices: notices.writer,
    isRecovered: () => recovering?.isRecovered() ?? false,
    tlsNow: () => tlsOf(storeNow()),
    ...storeTimes,
  });
  opened.push(() => bare.close());
  const hasAnswered = await demandFitness(bare, outages);
  const remote = settings.store.kind !== "embedded";
  const composed = composeStore(bare, { clock, random: Math.random, metrics, log, remote });
  const { store } = composed;
  const health = watchHealth({ store, hasAnswered, clock, metrics, log, outages });
  opened.push(
    () => composed.stop(),
    () => health.stop(),
  );
  const chargingParts = {
    settings: settings.journal,
    store: composed,
    storeKind: settings.store.kind,
    clock,
    metrics,
    log,
    onStoreOlder: (isOlder: boolean) => {
      if (isOlder && serves !== "clients") notices.note("books_off", { finding: "store_older" });
    },
  };
  const charging = await openCharging(chargingParts);
  recovering = charging;
  opened.push(() => charging.close());
  const { journal } = charging;
  notices.start(charging.store);
  opened.push(() => notices.stop());
  const journaled = (open: Store) => journaledStore(open, journal, loggedTo(log));
  // Of several processes only the parent does what is needed once.
  const claims = serves === "clients" ? undefined : sweepClaims({ store: journaled(charging.store), clock, log });
  opened.push(() => claims?.stop());
  const ledgerWatch = serves === "clients" ? undefined : booksWatched({ store, clock, metrics, log }, notices);
  opened.push(() => ledgerWatch?.stop());
  const orphanJournals = serves === "clients" ? undefined : takeOverJournals(chargingParts, settings.workers);
  opened.push(() => orphanJournals?.close());
  return {
    store,
    charging,
    notices,
    journaled,
    reasons: () => [health, composed, charging].flatMap((part) => part.reasons()),
    storeUnfit: () => health.unfit(),
    storeAway: () => outages.problem,
  };
}

const tlsOf = (store: StoreSettings) => (store.kind === "embedded" ? undefined : store.tls);

/** Checks that accounts agree with their ledgers, and notifies the operator of one that does not. */
function booksWatched(parts: Omit<Parameters<typeof watchLedger>[0], "onUnbalanced">, notices: Notices) {
  return watchLedger({
    ...parts,
    onUnbalanced: (account, findings) =>
      notices.note("books_off", { finding: "ledger_unbalanced", account_id: account, findings: `${findings}` }),
  });
}

/** Logs a write that the journal has not taken. */
function loggedTo(log: Log): Parameters<typeof journaledStore>[2] {
  return ({ kind, id }, error) =>
    log.error(
      { event: "write_unjournaled", write: kind, id, reason: errorStack(error) },
      "a write is in the store but not in the journal: if the store loses it, it cannot be restored",
    );
}
