/**
 * The background audit: every hour it audits all accounts, in steps with pauses in between, so that requests are not
 * delayed. Two gauges count its findings; the log names account and line.
 */

import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { nanoUsd } from "../../values/money.ts";
import type { Clock } from "../../values/time.ts";
import { type Store, StoreError } from "../contract.ts";
import { type AccountAudit, type AuditStore, auditAccount } from "../ledger/audit.ts";
import { accountId } from "../names.ts";
import type { AccountName } from "../records.ts";

const FIRST_AFTER_MS = 60_000;
const AUDIT_EVERY_MS = 3_600_000;
/** The pause for requests after a page of lines, or after some small steps. */
const PAUSE_MS = 50;
const SMALL_STEPS = 8;
/** Unbalanced accounts that are remembered as reported. Further ones are reported at every audit. */
const REPORTED_MAX = 10_000;
/** Accounts whose names are listed at a time. */
const PAGE_ACCOUNTS = 100;
/** The waits between retries when the store does not answer. After them the audit is cut off until the next hour. */
const AGAIN_AFTER_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 60_000, 60_000, 60_000];
/** Retries for an account that the store does not serve: its slot may be moving to another server. */
const OWN_ATTEMPTS_MAX = 4;
/** An account that has been topped up counts as low below 1 USD available. */
const LOW_BELOW = nanoUsd(1_000_000_000n);
/** Cards are counted by how soon they end. The later groups include the sooner ones. */
const EXPIRING_WITHIN = [
  { within: "1d", ms: 86_400_000 },
  { within: "7d", ms: 7 * 86_400_000 },
];

interface LedgerWatch {
  /** Resolves when no audit is under way and none will follow. */
  stop(): Promise<void>;
}

type WatchedStore = AuditStore & Pick<Store, "listAccountNames" | "listCards">;

/** Starts the hourly audit; the first begins a minute after the start. */
export function watchLedger(parts: {
  store: WatchedStore;
  clock: Clock;
  metrics: Metrics;
  log: Log;
  /** Called for an account whose ledger does not balance, once until it balances again. */
  onUnbalanced?: (account: string, findings: number) => void;
}): LedgerWatch {
  const { store, clock, metrics, log, onUnbalanced } = parts;
  const reported = new Set<string>();
  let running = Promise.resolve();
  let stopped = false;
  let cancelTimer = () => {};
  let wake = () => {};
  const wait = async (ms: number): Promise<void> => {
    if (stopped) throw STOPPED;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(ms, resolve);
    wake = resolve;
    await promise;
    cancel();
    if (stopped) throw STOPPED;
  };

  /** Retries while the store does not answer. */
  const patiently = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const again = attempt < OWN_ATTEMPTS_MAX || !isOfItsOwn(error) ? AGAIN_AFTER_MS[attempt] : undefined;
        if (!(error instanceof StoreError) || again === undefined) throw error;
        await wait(again);
      }
    }
  };

  let small = 0;
  /** The audit of one account, with pauses. */
  const audit = async (account: AccountName): Promise<AccountAudit> => {
    const steps = auditAccount(store, account);
    let lines = 0;
    for (;;) {
      const step = await patiently(async () => {
        const one = await steps.next();
        if (!one.done && one.value.error) throw one.value.error;
        return one;
      });
      if (step.done) return step.value;
      small += 1;
      if (step.value.lines === lines && small < SMALL_STEPS) continue;
      lines = step.value.lines;
      small = 0;
      await wait(PAUSE_MS);
    }
  };

  const isBalanced = (found: AccountAudit): boolean => {
    const account = accountId(found.tag);
    if (found.outcome === "balanced") {
      reported.delete(account);
      return true;
    }
    const { findings, findingCount } = found;
    if (!reported.has(account)) onUnbalanced?.(account, findingCount);
    if (reported.size < REPORTED_MAX) reported.add(account);
    log.error({ account, findings, findingCount }, "the ledger of an account does not balance");
    return false;
  };

  /** Whether an account is in order. A fault in its own records does not keep the others from being audited. */
  const look = async (name: AccountName, counts: PassCounts): Promise<boolean> => {
    try {
      const found = await audit(name);
      const balanced = isBalanced(found);
      const { account } = found;
      if (account && account.topped > 0n && account.balance - account.held < LOW_BELOW) counts.low += 1;
      const listed = await patiently(() => store.listCards(name.tag)).catch((error: unknown) => {
        // Its audit has reported the damage.
        if (isOfItsOwn(error) && !balanced) return undefined;
        throw error;
      });
      for (const { untilMs } of listed?.cards ?? [])
        for (const span of counts.expiring) if (untilMs - (listed?.storeTimeMs ?? 0) <= span.ms) span.cards += 1;
      return balanced;
    } catch (error) {
      if (!isOfItsOwn(error)) throw error;
      log.error({ account: accountId(name.tag), reason: error.message }, "an account cannot be audited");
      return false;
    }
  };

  let shown = 0;
  const pass = async (): Promise<void> => {
    let cursor: string | undefined;
    let unbalanced = 0;
    const counts: PassCounts = { low: 0, expiring: EXPIRING_WITHIN.map((span) => ({ ...span, cards: 0 })) };
    do {
      const from = cursor;
      const page = await patiently(() => store.listAccountNames(from, PAGE_ACCOUNTS));
      for (const name of page.items) {
        if (!(await look(name, counts))) unbalanced += 1;
        // Findings are published at once, because the pass may be cut off.
        if (unbalanced > shown) {
          shown = unbalanced;
          metrics.ledgerUnbalanced.set(shown);
        }
      }
      cursor = page.next;
    } while (cursor !== undefined);
    shown = unbalanced;
    metrics.ledgerUnbalanced.set(unbalanced);
    metrics.accountsLow.set(counts.low);
    for (const { within, cards } of counts.expiring) metrics.entitlementsExpiring.set({ within }, cards);
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

/** What one pass over all accounts counts besides unbalanced accounts. */
interface PassCounts {
  low: number;
  readonly expiring: { readonly within: string; readonly ms: number; cards: number }[];
}

/** Whether the store answers, but not for this account: long retries are of no use. */
function isOfItsOwn(error: unknown): error is StoreError {
  return error instanceof StoreError && error.outcome === "refused";
}

const STOPPED = new Error("stopped");
