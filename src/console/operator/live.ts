/**
 * What goes on at this instant, once a second, for whoever watches: requests, first tokens, refusals, spend. One reading of
 * the metrics serves all watchers, and while there are none nothing is read.
 */
import { PassThrough, type Readable } from "node:stream";
import type { LiveFigures } from "../../telemetry/live-figures.ts";
import { formatUsd } from "../../values/money.ts";
import type { Clock } from "../../values/time.ts";
import type { LiveAnswer } from "../answers/live.ts";
import { AdminRefusal } from "../refusal.ts";

const EVERY_MS = 1_000;
/** The span of what is not of this very second. */
const WINDOW_READINGS = 60;
export const WATCHERS_MAX = 16;
/** A stream ends after so long; a page asks again, and whose session is over gets no other one. */
const STREAM_SNAPSHOTS_MAX = 60;
/** A watcher that reads no more than this loses snapshots, and the gateway no memory. */
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
  /** Snapshots that it is still to get. */
  left: number;
}

export class LiveFeed {
  readonly #parts: LiveParts;
  readonly #watchers = new Set<LiveWatcher>();
  /** Oldest first; empty while nobody watches. */
  #readings: LiveReading[] = [];
  #newest: string | undefined;
  #cancel = () => {};
  #isRunning = false;
  /** The number of the loop of readings that goes on: another one stops when it sees it. */
  #run = 0;

  constructor(parts: LiveParts) {
    this.#parts = parts;
  }

  /**
   * Server-sent events, one snapshot each, the first at once.
   * @param snapshots after which the stream ends.
   * @throws AdminRefusal 429 when too many watch
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
    // Meanwhile the last watcher may have gone, and whoever has come since has a loop of its own.
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
    // What was given may have been the last that anybody was to get.
    if (run === this.#run) this.#cancel = this.#parts.clock.after(EVERY_MS, () => void this.#tick(run));
  }

  #gone(watcher: LiveWatcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    this.#cancel();
    this.#rest();
  }

  /** Nobody watches: what was read is of no use to whoever comes later. */
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

/** @param readings at least one. */
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

/** A sum over processes may go back for a moment, where one of them has ended. */
const risen = (now: number, before: number) => Math.max(0, now - before);

function rises<K>(now: ReadonlyMap<K, number>, before: ReadonlyMap<K, number>): Map<K, number> {
  return new Map([...now].map(([key, value]) => [key, risen(value, before.get(key) ?? 0)]));
}

function largestFirst(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].filter(([, value]) => value > 0).sort(([, a], [, b]) => b - a);
}

/** As Prometheus reads a quantile off buckets: evenly between a bucket's ends; beyond the last end, that end. */
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
    `${WATCHERS_MAX} watch already.`,
    "Close a window that shows live figures, or read GET /metrics, which has no such limit.",
    { "retry-after": "10" },
  );
}
