/**
 * One soak: a number of streams at once for a given time, with faults on both sides, then a check of the books. How to read the result:
 * docs/soak.md.
 */
import { setTimeout as wait } from "node:timers/promises";
import { parseUsd } from "../../src/values/money.ts";
import { FINDINGS } from "../../test/endurance/judge/findings.ts";
import { type AccountAtEnd, judge, type SeenPayment } from "../../test/endurance/judge/judge.ts";
import { type Line, type ShownLine, shownLedger, shownLineOf } from "../../test/endurance/judge/line.ts";
import { type Chance, chanceOf } from "./chance.ts";
import { ask, clientAgent, type Seen } from "./client.ts";
import { type Counted, described, loggedRequests, outcomeOf } from "./description.ts";
import { type House, type LogLine, openHouse, type SoakAccount } from "./house.ts";
import { HEALTHY, type Payer, type Scenario, scenarioOf } from "./scenario.ts";
import { lowest, type Sample, sampleOf, sumOf, type Trend, trendOf } from "./watch.ts";

export interface SoakOptions {
  readonly seconds: number;
  readonly streams: number;
  readonly store: "embedded" | "redis";
  readonly seed: number;
  /** Between two events of one stream. */
  readonly eventMs: number;
  /** Called regularly with the progress. */
  readonly onSample?: (sample: Sample, answered: number) => void;
}

export interface SoakResult {
  readonly ok: boolean;
  readonly options: Omit<SoakOptions, "onSample">;
  readonly requests: number;
  readonly counted: Counted & Charged;
  /** Requests without a fault on either side, and how many of them were answered to the end. */
  readonly healthy: { readonly asked: number; readonly complete: number };
  readonly statuses: Readonly<Record<string, number>>;
  readonly ends: Readonly<Record<string, number>>;
  /** For the second half of the run; the rise is that of the fitted line. Heap: the minimum of each group of samples. */
  readonly rssMib: Trend;
  readonly heapMib: Trend;
  readonly descriptors: { readonly start: number; readonly most: number; readonly end: number };
  readonly loopP99Ms: { readonly median: number; readonly most: number };
  /** From the last answer until nothing of the load was left. */
  readonly quietSeconds: number;
  readonly inFlightMost: number;
  readonly upstreamRestarts: number;
  /** Findings, each with its count and one example; empty in a good run. */
  readonly violations: readonly { readonly what: string; readonly times: number; readonly example: unknown }[];
}

/** Data of the ledger and the log on all requests. */
export interface Charged {
  readonly charged: number;
  readonly chargedNanoUsd: string;
  readonly extended: number;
  readonly cutForFunds: number;
}

const SAMPLE_MS = 2_500;
/** Samples per group; the one with the smallest heap counts. */
const HEAP_ROW = 8;
/** Shorter runs end before the heap has reached its size; their memory is reported but not judged. */
const JUDGED_SECONDS = 240;
/** How much the fitted line may rise over the second half: this share of its mean, or this absolute amount. */
const RISE_SHARE_MAX = 0.08;
const RISE_MIB_MAX = 16;
/** Descriptors above the number at the start that are allowed when all is quiet again. */
const DESCRIPTORS_MARGIN = 8;
const QUIET_MS_MAX = 90_000;
const POLL_MS = 500;
const RESTART_MS = 60_000;
const TOPUP_MS = 10_000;
const TOPUP_USD = "0.003";
/** Share of the requests without a fault that must be answered to the end, although upstreams are killed now and then. */
const HEALTHY_SHARE_MIN = 0.6;
/** Enough addresses that those with bad keys are seldom blocked, and few enough that it happens. */
const ADDRESSES = 5_000;

/** Runs one soak; rejects only if it could not be run. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const house = await openHouse(options.store);
  try {
    return await new Soak(house, options).run();
  } finally {
    await house.close();
  }
}

interface Findings {
  readonly atStart: Sample;
  readonly atEnd: Sample;
  readonly quietFromMs: number;
  readonly counted: Counted & Charged;
  readonly log: readonly LogLine[];
}

class Soak {
  readonly #house: House;
  readonly #options: SoakOptions;
  readonly #agent = clientAgent();
  readonly #seen: Seen[] = [];
  readonly #samples: Sample[] = [];
  readonly #payments: SeenPayment[] = [];
  readonly #violations = new Map<string, { what: string; times: number; example: unknown }>();
  readonly #accounts: ReadonlyMap<Payer, readonly SoakAccount[]>;
  readonly #startedMs = performance.now();
  readonly #over = new AbortController();
  #number = 0;
  #restarts = 0;
  #topups = 0;

  constructor(house: House, options: SoakOptions) {
    this.#house = house;
    this.#options = options;
    this.#accounts = Map.groupBy(house.accounts, ({ payer }) => payer);
  }

  async run(): Promise<SoakResult> {
    const atStart = await sampleOf(this.#house, this.#startedMs);
    const { seconds, streams, seed } = this.#options;
    const work = Array.from({ length: streams }, (_, i) => this.#client(chanceOf(seed * 1_000_003 + i)));
    const besides = [
      this.#every(SAMPLE_MS, () => this.#sample()),
      this.#every(Math.min(RESTART_MS, seconds * 600), () => this.#house.restartUpstream(this.#restarts++)),
      this.#every(TOPUP_MS, () => this.#topUp()),
    ];
    await wait(seconds * 1_000);
    this.#over.abort();
    await Promise.all([...work, ...besides]);
    this.#agent.destroy();
    // Idle connections to them stay open for a minute; a short run does not wait for that.
    if (seconds < JUDGED_SECONDS) this.#house.stopUpstreams();
    const quietFromMs = performance.now();
    const { atEnd, leftOver } = await this.#quiet(atStart);
    const accounts: (AccountAtEnd & { readonly lines: readonly Line[] })[] = [];
    // One after the other: together they would keep a Redis busy for longer than the gateway's timeout.
    for (const { name } of this.#house.accounts) {
      const lines = await shownLedger<ShownLine>(name, (path) => this.#house.admin("GET", path));
      accounts.push({ name, lines: lines.map(shownLineOf), ...(await this.#audit(name)) });
    }
    const { code, log } = await this.#house.stopGateway();
    if (code !== 0) this.#complain("the gateway ended badly", code);
    for (const line of log)
      if (line.text !== undefined || Number(line.level) >= 50) this.#complain("an error in the log", line);
    const unnamed = this.#seen.filter(({ requestId }) => requestId === undefined).length;
    const findings = judge({
      requests: this.#seen.map(described),
      unnamed,
      payments: this.#payments,
      accounts,
      log: loggedRequests(log),
      leftOver,
      countsStayInHold: true,
    });
    for (const { kind, what } of findings) this.#complain(FINDINGS[kind], what);
    const counted = { ...this.#counted(), ...chargedIn(accounts, log) };
    return this.#result({ atStart, atEnd, quietFromMs, counted, log });
  }

  #counted(): Counted {
    const counted = { complete: 0, failed: 0, refused: 0, left: 0, unanswered: 0 };
    for (const seen of this.#seen) counted[outcomeOf(seen)]++;
    return counted;
  }

  /** Records a finding with an example. */
  readonly #complain = (what: string, example: unknown): void => {
    const known = this.#violations.get(what) ?? { what, times: 0, example };
    known.times++;
    this.#violations.set(what, known);
  };

  /** One of the streams: one request after the other. */
  async #client(chance: Chance): Promise<void> {
    // Not all at once: otherwise the streams would stay synchronized.
    await wait(chance.between(0, Math.min(5_000, this.#options.seconds * 100)));
    while (!this.#over.signal.aborted) {
      const scenario = scenarioOf(chance, this.#number++, this.#options.eventMs);
      const { key, name: account } = this.#payerOf(scenario, chance);
      const address = `10.0.${chance.between(0, ADDRESSES >> 8)}.${chance.between(0, 255)}`;
      this.#seen.push(await ask(scenario, { url: this.#house.url, agent: this.#agent, key, account, address }));
    }
  }

  #payerOf({ payer }: Scenario, chance: Chance): { readonly key: string; readonly name: string | undefined } {
    if (payer === "nobody") return { key: `sk-${String(chance.between(0, 999)).padStart(48, "0")}`, name: undefined };
    return chance.pick(this.#accounts.get(payer) ?? []);
  }

  async #every(ms: number, task: () => Promise<unknown>): Promise<void> {
    const { signal } = this.#over;
    for (;;) {
      await wait(ms, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await task().catch((error: unknown) => this.#complain("something beside the streams failed", String(error)));
    }
  }

  async #sample(): Promise<void> {
    const sample = await sampleOf(this.#house, this.#startedMs);
    this.#samples.push(sample);
    this.#options.onSample?.(sample, this.#seen.length);
  }

  async #topUp(): Promise<void> {
    const id = `more-${this.#topups++}`;
    for (const { name } of this.#accounts.get("poor") ?? []) {
      await this.#house.admin("POST", `/accounts/${name}/topups`, { usd: TOPUP_USD, id });
      this.#payments.push({ account: name, id, amount: parseUsd(TOPUP_USD) ?? 0n, isPromised: true });
    }
  }

  /** Waits until nothing of the load is left, and reports what still is. */
  async #quiet(atStart: Sample): Promise<{ atEnd: Sample; leftOver: Readonly<Record<string, number>> }> {
    const untilMs = performance.now() + QUIET_MS_MAX;
    for (;;) {
      const metrics = await this.#house.metrics();
      const sample = await sampleOf(this.#house, this.#startedMs);
      const left = {
        in_flight: sumOf(metrics, "tollgate_in_flight"),
        queued: sumOf(metrics, "tollgate_queued"),
        journal_unsettled: sumOf(metrics, "tollgate_journal_unsettled"),
        unrecorded_charges: sumOf(metrics, "tollgate_unrecorded_charges"),
        dead_letters: sumOf(metrics, "tollgate_dead_letters"),
        descriptors: Math.max(0, sample.descriptors - atStart.descriptors - DESCRIPTORS_MARGIN),
      };
      const isQuiet = Object.values(left).every((value) => value === 0);
      if (isQuiet || performance.now() > untilMs) return { atEnd: sample, leftOver: left };
      await wait(POLL_MS);
    }
  }

  /** The gateway's own audit of an account, which may take more than one answer. */
  async #audit(name: string): Promise<Pick<AccountAtEnd, "audit" | "held">> {
    let audit: { outcome: string; held_usd: string } | undefined;
    for (let cursor = ""; !audit; ) {
      const path = `/ledger/verification?account=${name}${cursor}`;
      const answer = await this.#house.admin<{ items: (typeof audit)[]; next: string | null }>("GET", path);
      [audit] = answer.items;
      if (answer.next === null) break;
      cursor = `&cursor=${answer.next}`;
    }
    return {
      audit: audit?.outcome === "balanced" ? [] : [JSON.stringify(audit) ?? "no audit"],
      held: Number(audit?.held_usd) === 0 ? "" : `${audit?.held_usd} USD`,
    };
  }

  #result({ atStart, atEnd, quietFromMs, counted, log }: Findings): SoakResult {
    const { onSample: _, ...options } = this.#options;
    const half = this.#samples.filter(({ seconds }) => seconds > this.#options.seconds / 2);
    const rssMib = trendOf(half, ({ rssMib }) => rssMib);
    const heapMib = trendOf(lowest(half, HEAP_ROW), ({ heapMib }) => heapMib);
    if (this.#options.seconds >= JUDGED_SECONDS) {
      for (const [name, trend] of Object.entries({ rss: rssMib, heap: heapMib })) {
        const bound = Math.max(RISE_MIB_MAX, trend.mean * RISE_SHARE_MAX);
        if (trend.rise > bound) this.#complain(`${name} rises`, { trend, bound });
      }
    }
    const healthy = this.#healthy(log);
    if (healthy.complete < healthy.asked * HEALTHY_SHARE_MIN) this.#complain("too few complete answers", healthy);
    const delays = this.#samples.map(({ loopP99Ms }) => loopP99Ms).sort((a, b) => a - b);
    const requests = log.filter(({ msg }) => msg === "request");
    const violations = [...this.#violations.values()];
    return {
      ok: violations.length === 0,
      options,
      requests: this.#seen.length,
      counted,
      healthy,
      statuses: tally(this.#seen.map(({ status }) => String(status))),
      ends: tally(requests.map(({ stream_end, cause }) => String(stream_end ?? cause))),
      rssMib: rounded(rssMib),
      heapMib: rounded(heapMib),
      descriptors: {
        start: atStart.descriptors,
        most: Math.max(...this.#samples.map(({ descriptors }) => descriptors)),
        end: atEnd.descriptors,
      },
      loopP99Ms: { median: Math.round(delays[delays.length >> 1] ?? 0), most: Math.round(delays.at(-1) ?? 0) },
      quietSeconds: Math.round(atEnd.seconds - (quietFromMs - this.#startedMs) / 1_000),
      inFlightMost: Math.max(...this.#samples.map(({ inFlight }) => inFlight)),
      upstreamRestarts: this.#restarts,
      violations,
    };
  }

  #healthy(log: readonly LogLine[]): SoakResult["healthy"] {
    const ends = new Map(log.map((line) => [line.request, line]));
    const asked = this.#seen.filter(({ scenario }) => HEALTHY.has(scenario.kind));
    const complete = asked.filter(({ requestId, status }) => {
      const end = ends.get(requestId)?.stream_end;
      return status === 200 && (end === undefined || end === "complete");
    });
    return { asked: asked.length, complete: complete.length };
  }
}

function chargedIn(accounts: readonly { readonly lines: readonly Line[] }[], log: readonly LogLine[]): Charged {
  const charges = accounts.flatMap(({ lines }) => lines.filter(({ kind }) => kind === "usage"));
  const requests = log.filter(({ msg }) => msg === "request");
  return {
    charged: charges.length,
    chargedNanoUsd: String(charges.reduce((sum, { amount }) => sum + amount, 0n)),
    extended: requests.filter((line) => line.hold_extensions !== undefined).length,
    cutForFunds: requests.filter((line) => line.stream_end === "brake").length,
  };
}

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function rounded({ mean, rise, most }: Trend): Trend {
  const one = (value: number): number => Math.round(value * 10) / 10;
  return { mean: one(mean), rise: one(rise), most: one(most) };
}
