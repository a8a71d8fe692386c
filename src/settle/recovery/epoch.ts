/**
 * Detects a store that lost more than its last seconds: it is empty, was restored from a backup, or is a different one
 * (docs/failure-model.md row B12). From then on nothing is admitted and nothing is written, until the right data is
 * back (the gateway notices that by itself) or an operator accepts the store as it is.
 */
import { createHash } from "node:crypto";
import { StoreError } from "../../store/contract.ts";
import type { Epochs } from "../../store/epoch.ts";
import { type Log, withoutRepeats } from "../../telemetry/log.ts";
import type { AccountTag, RandomBytes } from "../../values/key.ts";
import { COMMAND } from "../../values/program/program.ts";
import type { Clock } from "../../values/time.ts";
import type { EpochFile } from "./epoch-file.ts";
import { isOurs, judgeEpoch, LOSS_ALLOWED_S, type Loss, lifeOf, pastOf } from "./epoch-verdict.ts";

const CHECK_EVERY_MS = 1_000;
/** How often the message to the operator is repeated. */
const LOG_EVERY_MS = 60_000;
/** Seconds by which the file may be out of date; a crash loses as much. */
const SAVE_EVERY_S = 10;
const ID_BYTES = 9;

export interface StoreEpoch {
  /**
   * Checks every part of the store; the check begins after the call. Rejects with StoreError: `unavailable` if a part
   * did not answer (with `tag`: if that account's part did not), `older` if there is a loss.
   */
  check(tag?: AccountTag): Promise<void>;
  /** Whether a check has ever succeeded. */
  readonly checked: boolean;
  /**
   * Why no part's history can be read although the store answers, for example because its key has a value of another
   * kind; undefined while it can be read.
   */
  unreadable(): string | undefined;
  /** The losses; empty if there are none. */
  losses(): readonly Loss[];
  /** Identifies the losses, so that an operator confirms exactly those that were shown; undefined without a loss. */
  token(): string | undefined;
  /** Identifies the history; changes when an operator confirms a loss. */
  history(): string;
  /** Like `history`, but changes also when the history went back by an allowed amount. */
  life(): string;
  /**
   * Accepts the store as it is. `changed`: the losses are not those that the token identifies.
   * Rejects with StoreError when the store does not answer.
   */
  confirm(token: string): Promise<"confirmed" | "changed" | "nothing">;
  start(): void;
  /** Resolves when no check is running and what is known is on the disk. */
  stop(): Promise<void>;
}

interface StoreEpochParts {
  readonly store: Epochs;
  readonly file: EpochFile;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: RandomBytes;
  /** Called when a loss is found and when it is resolved. */
  readonly onChange: (stopped: boolean) => void;
}

const LOST =
  "THE STORE LOST DATA: nothing is admitted until its data is back or an operator confirms. " +
  "Restore a newer backup or point `store:` at the right server, and the gateway continues by itself. " +
  `To see what differs, and the command that accepts the loss, run: ${COMMAND} store status`;

const UNREADABLE =
  "the store's history cannot be read: nothing is admitted until it was read once, and a loss of data would go unnoticed; " +
  "check what is stored under the history's key (epoch:{...} on Redis)";

const UNSAVED = "what is known of the store's history could not be saved";

/** Reads what this gateway last knew of the store's history. Rejects when the file cannot be read. */
export async function openStoreEpoch(parts: StoreEpochParts): Promise<StoreEpoch> {
  const { store, file, clock, log, random, onChange } = parts;
  const known = new Map(await file.load());
  let saved = new Map(known);
  const losses = new Map<number, Loss>();
  let checked = false;
  let running: Promise<readonly PromiseSettledResult<void>[]> | undefined;
  let queued: Promise<readonly PromiseSettledResult<void>[]> | undefined;
  let loggedAtMs = 0;
  let stopped = false;
  let cancel = () => {};
  const reports = new CheckReports(clock, log);
  const names = { history: "", life: "" };
  const newId = () => Buffer.from(random(ID_BYTES)).toString("base64url");

  async function checkPart(part: number): Promise<void> {
    const before = known.get(part);
    const ours = before && { id: before.id, countMin: before.count - LOSS_ALLOWED_S };
    const found = await store.countEpoch(part, ours, newId());
    const verdict = judgeEpoch(before, found);
    if ("known" in verdict) {
      known.set(part, verdict.known);
      losses.delete(part);
      return;
    }
    const loss: Loss = { part, kind: verdict.loss, known: before, found };
    losses.set(part, loss);
    if (found && !found.stopped && isOurs(loss)) await store.stopEpoch(part, found.id);
  }

  async function round(): Promise<readonly PromiseSettledResult<void>[]> {
    const was = losses.size > 0;
    const results = await Promise.allSettled(Array.from({ length: store.epochParts }, (_, part) => checkPart(part)));
    name();
    checked ||= results.some(({ status }) => status === "fulfilled");
    reports.note(results);
    if (losses.size > 0 !== was) changed();
    else if (was && clock.monotonicMs() - loggedAtMs >= LOG_EVERY_MS) logLoss();
    if (isWorthSaving()) await save();
    return results;
  }

  function changed(): void {
    onChange(losses.size > 0);
    if (losses.size > 0) logLoss();
    else log.warn({}, "the store has its data");
  }

  function logLoss(): void {
    loggedAtMs = clock.monotonicMs();
    log.error({ event: "store_older", losses: [...losses.values()].map(({ part, kind }) => ({ part, kind })) }, LOST);
  }

  function isWorthSaving(): boolean {
    return [...known].some(([part, { id, times, count }]) => {
      const on = saved.get(part);
      return on?.id !== id || on.times !== times || count - on.count >= SAVE_EVERY_S;
    });
  }

  async function save(): Promise<void> {
    const now = new Map(known);
    try {
      await file.save(now);
      saved = now;
    } catch (error) {
      reports.unsaved(String(error));
    }
  }

  /** Callers that ask while a round runs share the next one. */
  function nextRound(): Promise<readonly PromiseSettledResult<void>[]> {
    const run = () => {
      queued = undefined;
      running = round().finally(() => {
        running = undefined;
      });
      return running;
    };
    if (!running) return run();
    queued ??= running.then(run, run);
    return queued;
  }

  async function check(tag?: AccountTag): Promise<void> {
    const results = await nextRound();
    if (losses.size > 0) throw older();
    const one = tag === undefined ? undefined : results[store.epochPartOf(tag)];
    const failed = (one ? [one] : results).find((result) => result.status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
  }

  function token(): string | undefined {
    if (losses.size === 0) return undefined;
    const seen = [...losses.values()].map(({ part, kind, known, found }) => [part, kind, known?.id, found?.id]);
    return hashOf(JSON.stringify(seen.sort()));
  }

  async function confirm(given: string): Promise<"confirmed" | "changed" | "nothing"> {
    const failed = (await nextRound()).find((result) => result.status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
    while (running) await running;
    const work = renew(given);
    // A check that ran at the same time would take the old state for a new loss.
    running = work
      .then(() => [])
      .finally(() => {
        running = undefined;
      });
    running.catch(() => undefined);
    return work;
  }

  async function renew(given: string): Promise<"confirmed" | "changed" | "nothing"> {
    if (losses.size === 0) return "nothing";
    if (token() !== given) return "changed";
    for (const loss of [...losses.values()]) {
      const past = pastOf(loss);
      const mark = await store.renewEpoch(loss.part, loss.found?.id, { id: newId(), past });
      if (!mark) return "changed";
      known.set(loss.part, { id: mark.id, count: mark.count, base: 0, past });
      losses.delete(loss.part);
    }
    name();
    await save();
    log.warn({}, "an operator has confirmed the store as it is; the journal restores what it has");
    onChange(false);
    return "confirmed";
  }

  function again(): void {
    if (!stopped) cancel = clock.after(CHECK_EVERY_MS, () => void nextRound().then(again, again));
  }

  function name(): void {
    const parts = Array.from({ length: store.epochParts }, (_, part) => known.get(part));
    names.history = hashOf(parts.map((epoch) => epoch?.id ?? "").join(" "));
    names.life = hashOf(parts.map(lifeOf).join(" "));
  }
  name();

  return {
    check,
    get checked() {
      return checked;
    },
    unreadable: () => reports.problem,
    losses: () => (losses.size > 0 ? [...losses.values()] : NONE),
    token,
    history: () => names.history,
    life: () => names.life,
    confirm,
    start() {
      void nextRound().then(again, again);
    },
    async stop() {
      stopped = true;
      cancel();
      await running?.catch(() => undefined);
      if (known.size > 0) await save();
    },
  };
}

/**
 * Reports checks refused by a store that answers, and a file that cannot be written. An unavailable store is reported by
 * its health check.
 */
class CheckReports {
  readonly #report: (reason: string) => void;
  /** Not at each failure: the save is tried again at each check, and the log may be on the same full disk. */
  readonly unsaved: (reason: string) => void;
  /** Why no part could be read by the last check that was answered; undefined if one could. */
  problem: string | undefined;

  constructor(clock: Clock, log: Log) {
    this.#report = withoutRepeats(clock, (reason) =>
      log.error({ event: "store_history_unreadable", reason }, UNREADABLE),
    );
    this.unsaved = withoutRepeats(clock, (reason) => log.error({ reason }, UNSAVED));
  }

  note(checks: readonly PromiseSettledResult<void>[]): void {
    const reasons = checks.flatMap((check) => (check.status === "rejected" ? [check.reason as unknown] : []));
    const refusals = reasons.filter((reason) => reason instanceof StoreError && reason.outcome === "refused");
    const [first] = refusals as StoreError[];
    if (reasons.length < checks.length) this.problem = undefined;
    else if (first) this.problem = `the store's history cannot be read: ${first.message}`;
    if (first) this.#report(first.message);
  }
}

/** Shared, because each request asks three times and usually there are none. */
const NONE: readonly Loss[] = [];

/** The error for callers while a loss is unresolved. */
export function older(): StoreError {
  return new StoreError("older", "the store lost data and waits for an operator");
}

function hashOf(value: string): string {
  return createHash("sha256").update(value).digest("hex").slice(0, 12);
}
