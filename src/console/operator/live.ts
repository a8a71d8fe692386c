/**
 * Live figures as a stream, once a second: requests, first tokens, refusals, spend. All watchers share one reading of
 * the metrics. Without watchers, nothing is read.
 */
import { PassThrough, type Readable } from "node:stream";
import type { LiveFigures } from "../../telemetry/live-figures.ts";
import { formatUsd } from "../../values/money.ts";
import type { Clock } from "../../values/time.ts";
import type { LiveAnswer } from "../answers/live.ts";
import { AdminRefusal } from "../refusal.ts";

const EVERY_MS = 1_000;
/** The span of the figures that cover more than the last second. */
const WINDOW_READINGS = 60;
export const WATCHERS_MAX = 16;
/** A stream ends after this many snapshots. A page then connects again, which fails if its session has ended. */
const STREAM_SNAPSHOTS_MAX = 60;
/** A watcher with this much unread data loses snapshots, which bounds the gateway's memory. */
const UNREAD_BYTES_MAX = 65_536;

interface LiveParts {
  readonly figures: () => Promise<LiveFigures>;
  readonly clock: Clock;
}

interface LiveReading {
  readonly atMs: number;
  readonly figures: LiveFigures;
}

interface LiveWatcher {
  readonly stream: PassThrough;
  /** Snapshots that the watcher still gets. */
  left: number;
}

export class LiveFeed {
  readonly #parts: LiveParts;
  readonly #watchers = new Set<LiveWatcher>();
  /** Oldest first; empty while there are no watchers. */
  #readings: LiveReading[] = [];
  #newest: string | undefined;
  #cancel = () => {};
  #isRunning = false;
  /** The number of the current loop of readings. A loop with another number stops. */
  #run = 0;

  constructor(parts: LiveParts) {
    this.#parts = parts;
  }

  /**
   * A stream of server-sent events with one snapshot each, the first one immediately.
   * @param snapshots after which the stream ends
   * @throws AdminRefusal 429 if there are too many watchers
   */
  watch(snapshots = STREAM_SNAPSHOTS_MAX): Readable {
    if (this.#watchers.size >= WATCHERS_MAX) throw tooMany();
    const watcher: LiveWatcher = { stream: new PassThrough(), left: Math.min(snapshots, STREAM_SNAPSHOTS_MAX) };
    this.#watchers.add(watcher);
    watcher.stream.once("close", () => this.#gone(watcher));
    if (this.#newest !== undefined) give(watcher, this.#newest);
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#tick(this.#run);
    }
    return watcher.stream;
  }

  /** Ends all streams. */
  close(): void {
    for (const watcher of [...this.#watchers]) this.#end(watcher);
  }

  async #tick(run: number): Promise<void> {
    const figures = await this.#parts.figures().catch(() => undefined);
    // In the meantime the last watcher may have left, and a new one has started its own loop.
    if (run !== this.#run) return;
    if (figures !== undefined) {
      this.#readings.push({ atMs: this.#parts.clock.monotonicMs(), figures });
      if (this.#readings.length > WINDOW_READINGS + 1) this.#readings.shift();
      const snapshot = snapshotOf(this.#readings, this.#parts.clock.wallMs());
      this.#newest = `event: snapshot\ndata: ${JSON.stringify(snapshot)}\n\n`;
      for (const watcher of [...this.#watchers]) {
        give(watcher, this.#newest);
        if (watcher.left <= 0) this.#end(watcher);
      }
    }
    // The loop stops if this snapshot ended the last stream.
    if (run === this.#run) this.#cancel = this.#parts.clock.after(EVERY_MS, () => void this.#tick(run));
  }

  #gone(watcher: LiveWatcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    this.#cancel();
    this.#rest();
  }

  /** There are no watchers: discard the readings, which are useless to a later watcher. */
  #rest(): void {
    this.#readings = [];
    this.#newest = undefined;
    this.#isRunning = false;
    this.#run++;
  }

  #end(watcher: LiveWatcher): void {
    this.#gone(watcher);
    watcher.stream.end();
  }
}

function give(watcher: LiveWatcher, event: string): void {
  watcher.left--;
  if (watcher.stream.readableLength + watcher.stream.writableLength < UNREAD_BYTES_MAX) watcher.stream.write(event);
}

/** @param readings at least one */
function snapshotOf(readings: readonly LiveReading[], wallMs: number): LiveAnswer {
  const newest = readings.at(-1) as LiveReading;
  const before = readings.at(-2) ?? newest;
  const oldest = readings[0] as LiveReading;
  const tickMs = newest.atMs - before.atMs;
  const requests = risen(newest.figures.requests, before.figures.requests);
  const firstTokens = rises(newest.figures.firstTokens, oldest.figures.firstTokens);
  const { inFlight, queued, journalFill, unsettled } = newest.figures;
  return {
    at: new Date(wallMs).toISOString(),
    requests_per_second: tickMs > 0 ? rounded((requests * 1_000) / tickMs) : 0,
    in_flight: inFlight,
    queued,
    window_seconds: rounded((newest.atMs - oldest.atMs) / 1_000),
    requests: risen(newest.figures.requests, oldest.figures.requests),
    first_tokens: firstTokens.get(Number.POSITIVE_INFINITY) ?? 0,
    first_token_p50_ms: quantileMs(firstTokens, 0.5),
    first_token_p95_ms: quantileMs(firstTokens, 0.95),
    refusals: largestFirst(rises(newest.figures.refusals, oldest.figures.refusals)).map(([cause, count]) => ({
      cause,
      requests: count,
    })),
    spend: largestFirst(rises(newest.figures.spendUsd, oldest.figures.spendUsd)).map(([group, usd]) => ({
      group,
      usd: formatUsd(BigInt(Math.round(usd * 1e6)) * 1_000n),
    })),
    journal_fill: journalFill,
    unsettled,
  };
}

/** A sum over processes can decrease for a moment when one of them has ended. */
const risen = (now: number, before: number) => Math.max(0, now - before);

function rises<K>(now: ReadonlyMap<K, number>, before: ReadonlyMap<K, number>): Map<K, number> {
  return new Map([...now].map(([key, value]) => [key, risen(value, before.get(key) ?? 0)]));
}

function largestFirst(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].filter(([, value]) => value > 0).sort(([, a], [, b]) => b - a);
}

/** As Prometheus computes a quantile from buckets: linear within a bucket; beyond the last finite bound, that bound. */
function quantileMs(buckets: ReadonlyMap<number, number>, share: number): number | null {
  const ordered = [...buckets].sort(([a], [b]) => a - b);
  const total = ordered.at(-1)?.[1] ?? 0;
  if (total === 0) return null;
  const wanted = share * total;
  let [endS, count] = [0, 0];
  for (const [nextS, next] of ordered) {
    if (next < wanted) [endS, count] = [nextS, next];
    else if (nextS === Number.POSITIVE_INFINITY) break;
    else return Math.round((endS + ((nextS - endS) * (wanted - count)) / (next - count)) * 1_000);
  }
  return Math.round(endS * 1_000);
}

const rounded = (value: number) => Math.round(value * 100) / 100;

function tooMany(): AdminRefusal {
  return new AdminRefusal(
    429,
    "too_many_watchers",
    `There are already ${WATCHERS_MAX} watchers of the live figures.`,
    "Close a window that shows live figures, or read GET /metrics, which has no such limit.",
    { "retry-after": "10" },
  );
}
