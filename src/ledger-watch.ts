/**
 * The audit that nobody has to ask for: every hour all accounts, a page of lines at a time with a pause after each, so
 * that it costs requests nothing. What it finds stands in two gauges and, account and line, in the log.
 */

import type { Store } from "./store/contract.ts";
import { type AuditStore, auditAccount } from "./store/ledger-audit.ts";
import type { Account } from "./store/records.ts";
import type { Log } from "./telemetry/log.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import { nanoUsd } from "./values/money.ts";
import type { Clock } from "./values/time.ts";

const FIRST_AFTER_MS = 60_000;
const AUDIT_EVERY_MS = 3_600_000;
/** Lines that are read and judged at a time, and how long requests have the process for themselves after them. */
const PAGE_LINES = 200;
const PAUSE_MS = 50;
/** An account that has been topped up counts as low below 1 USD available. */
const LOW_BELOW = nanoUsd(1_000_000_000n);
/** Cards are counted by how soon they end; the sooner ones among the later ones too. */
const EXPIRING_WITHIN = [
  { within: "1d", ms: 86_400_000 },
  { within: "7d", ms: 7 * 86_400_000 },
];

export interface LedgerWatch {
  /** Resolves when no audit is under way and none will follow. */
  stop(): Promise<void>;
}

type WatchedStore = AuditStore & Pick<Store, "listAccounts">;

/** Starts the hourly audit; the first begins a minute after the start. */
export function watchLedger(parts: { store: WatchedStore; clock: Clock; metrics: Metrics; log: Log }): LedgerWatch {
  const { store, clock, metrics, log } = parts;
  let running = Promise.resolve();
  let stopped = false;
  let cancelTimer = () => {};
  let wake = () => {};
  const pause = async (): Promise<void> => {
    if (stopped) throw STOPPED;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(PAUSE_MS, resolve);
    wake = resolve;
    await promise;
    cancel();
    if (stopped) throw STOPPED;
  };

  const audit = async (account: Account): Promise<boolean> => {
    const found = await auditAccount(store, account.tag, { pause, pageLines: PAGE_LINES, holds: false });
    if (found?.outcome !== "unbalanced") return true;
    const { findings, findingCount } = found;
    log.error({ account: account.id, findings, findingCount }, "the ledger of an account does not balance");
    return false;
  };

  const pass = async (): Promise<void> => {
    let cursor: string | undefined;
    let unbalanced = 0;
    let low = 0;
    const expiring = EXPIRING_WITHIN.map((span) => ({ ...span, cards: 0 }));
    do {
      const page = await store.listAccounts(cursor, 1);
      for (const account of page.items) {
        if (!(await audit(account))) unbalanced += 1;
        if (account.topped > 0n && account.balance - account.held < LOW_BELOW) low += 1;
        const listed = await store.listCards(account.tag);
        for (const { untilMs } of listed?.cards ?? [])
          for (const span of expiring) if (untilMs - (listed?.storeTimeMs ?? 0) <= span.ms) span.cards += 1;
      }
      cursor = page.next;
      if (cursor !== undefined) await pause();
    } while (cursor !== undefined);
    metrics.ledgerUnbalanced.set(unbalanced);
    metrics.accountsLow.set(low);
    for (const { within, cards } of expiring) metrics.entitlementsExpiring.set({ within }, cards);
  };

  const run = async (): Promise<void> => {
    try {
      await pass();
    } catch (error) {
      if (error === STOPPED) return;
      log.warn({ reason: String(error) }, "the hourly audit of the ledger was cut off");
    }
    if (!stopped) schedule(AUDIT_EVERY_MS);
  };
  const schedule = (afterMs: number): void => {
    cancelTimer = clock.after(afterMs, () => {
      running = run();
    });
  };
  for (const { within } of EXPIRING_WITHIN) metrics.entitlementsExpiring.set({ within }, 0);
  schedule(FIRST_AFTER_MS);
  return {
    stop() {
      stopped = true;
      cancelTimer();
      wake();
      return running;
    },
  };
}

const STOPPED = new Error("stopped");
