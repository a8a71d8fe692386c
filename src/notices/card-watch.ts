/**
 * Notices of cards about to expire. No request triggers them, so the gateway that delivers checks all accounts
 * periodically.
 */
import { type Store, StoreError } from "../store/contract.ts";
import { accountId } from "../store/names.ts";
import { leadOfEndMs } from "../store/notices.ts";
import { type Log, withoutRepeats } from "../telemetry/log.ts";
import { createRecent } from "../values/collections/recent.ts";
import type { NoticeSettings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";

/** How often this process checks whether it is the one that delivers. */
const ASK_EVERY_MS = 5_000;
/** From the beginning of one pass to that of the next. A pass that takes longer is followed by the next at once. */
const LOOK_EVERY_MS = 600_000;
/** After a pass that failed, for example because the store did not answer. */
const RETRY_MS = 60_000;
/**
 * 500 accounts in a second. 100,000 take 200 s, and 5 to 15 s more for the reads. On an embedded store a page holds the
 * event loop for a millisecond.
 */
const PAGE_ACCOUNTS = 50;
const PAGE_PAUSE_MS = 100;
/** Cards remembered as notified; for others the store is asked again, which keeps it to one notice per card. */
const NOTIFIED_MAX = 10_000;
/** After this time the store is asked again: it may have lost the notice, and no journal restores it. */
const NOTIFIED_MS = 3_600_000;

type CardStore = Pick<Store, "listAccountNames" | "listCards" | "addNotice">;

interface CardWatch {
  stop(): Promise<void>;
}

export function watchCards(parts: {
  readonly store: CardStore;
  readonly settings: () => NoticeSettings | undefined;
  /** Whether it is this process that delivers. */
  readonly isLeader: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
}): CardWatch {
  const { store, settings, isLeader, clock, log } = parts;
  const notified = createRecent<true>({ max: NOTIFIED_MAX, ttlMs: NOTIFIED_MS, clock });
  const passedOver = withoutRepeats(clock, (reason) =>
    log.warn({ reason }, "the check of an account for cards about to expire failed; it is retried later"),
  );
  let stopped = false;
  let cancel = () => {};
  let wake = () => {};
  let running = Promise.resolve();

  const pause = (ms: number): Promise<void> => {
    if (stopped) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    cancel = clock.after(ms, resolve);
    wake = resolve;
    return promise;
  };

  const lookAt = async (tag: Parameters<Store["listCards"]>[0], withinMs: number): Promise<void> => {
    const listed = await store.listCards(tag);
    for (const { id, plan, group, fromMs, untilMs, quota, spent } of listed?.cards ?? []) {
      const nowMs = listed?.storeTimeMs ?? 0;
      if (untilMs - nowMs > leadOfEndMs(untilMs - fromMs, withinMs) || fromMs > nowMs || notified.has(id)) continue;
      const data: Record<string, string> = { card: id, plan, group, ends_at: `${untilMs}` };
      if (quota !== undefined) Object.assign(data, { quota: `${quota}`, rest: `${quota - spent}` });
      await store.addNotice(tag, { kind: "card_ending", ref: id, data }, { name: id, latest: 1 });
      notified.set(id, true);
    }
  };

  /** @returns whether this process is the one that checks. */
  const pass = async (): Promise<boolean> => {
    let cursor: string | undefined;
    do {
      const wanted = settings();
      if (stopped || !wanted?.kinds.has("card_ending") || !isLeader()) return false;
      const page = await store.listAccountNames(cursor, PAGE_ACCOUNTS);
      for (const { tag } of page.items) {
        if (stopped) return false;
        await lookAt(tag, wanted.cardEndsWithinMs).catch((error: unknown) => {
          // The account's records are damaged, or its part of the store is unavailable: the other accounts are still
          // checked.
          if (!(error instanceof StoreError)) throw error;
          passedOver(`${accountId(tag)}: ${error.message}`);
        });
      }
      cursor = page.next;
      if (cursor !== undefined) await pause(PAGE_PAUSE_MS);
    } while (cursor !== undefined);
    return true;
  };

  /** @returns how long to wait for the next pass. */
  const look = async (): Promise<number> => {
    const begunMs = clock.monotonicMs();
    try {
      if (!(await pass())) return ASK_EVERY_MS;
      return Math.max(ASK_EVERY_MS, begunMs + LOOK_EVERY_MS - clock.monotonicMs());
    } catch (error) {
      log.warn({ reason: String(error) }, "the check for cards about to expire failed; it is retried later");
      return RETRY_MS;
    }
  };

  const run = async (): Promise<void> => {
    const waitMs = await look();
    if (!stopped) schedule(waitMs);
  };
  const schedule = (ms: number): void => {
    cancel = clock.after(ms, () => {
      running = run();
    });
  };
  schedule(ASK_EVERY_MS);
  return {
    stop() {
      stopped = true;
      cancel();
      wake();
      return running;
    },
  };
}
