/**
 * A chaos run on one form of the store: gateways as separate processes, clients, and planned faults. Then everything
 * recovers, every gateway replays its journal, and the answers that clients got are compared with the ledgers.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSimulator } from "../../../src/simulator/server.ts";
import { seeded } from "../../unit/settle/rig.ts";
import { countsOf, type Finding, type FindingKind, wordsOf } from "../judge/findings.ts";
import { type ChaosAccount, openAccounts, type Payment, topUp, watchFunds } from "./accounts.ts";
import { chaosConfig, HOLD_LIFE_MS } from "./config.ts";
import { Fleet } from "./fleet.ts";
import { gatewayFaults, planFaults, strike } from "./plan.ts";
import { holding, type Judgement, journalsOf, judgeRemains, verifyLedgers } from "./remains.ts";
import { startCluster } from "./stores/cluster.ts";
import { startSentinelPair } from "./stores/sentinel.ts";
import { startEmbedded, startSingle } from "./stores/single.ts";
import { type ChaosStore, lasting } from "./stores/store.ts";
import { newTruth, Traffic, type Truth } from "./traffic.ts";

const FORMS = {
  embedded: { start: startEmbedded, gateways: 1 },
  single: { start: startSingle, gateways: 2 },
  sentinel: { start: startSentinelPair, gateways: 2 },
  cluster: { start: startCluster, gateways: 2 },
} as const satisfies Record<string, { start: () => Promise<ChaosStore>; gateways: number }>;

export type Form = keyof typeof FORMS;
export const ALL_FORMS = Object.keys(FORMS) as readonly Form[];

export interface SoakOptions {
  readonly form: Form;
  /** The number of complete answers to wait for. The faults are distributed over them. */
  readonly requests: number;
  readonly faults: number;
  readonly seed: number;
  /** The maximum time of the traffic, even if few answers have come by then. */
  readonly seconds: number;
  readonly clients: number;
  /** Whether to wait until the holds of killed gateways expire, which takes more than a minute. */
  readonly untilHoldsEnd: boolean;
  /** Called at the beginning of every fault. */
  readonly onFault?: (kinds: readonly string[], answered: number) => void;
}

/** Findings of the judge that have their own member in the report. */
const NAMED = [
  "missing",
  "double",
  "wrong_amount",
  "charged_refusals",
  "payments_missing",
  "payments_double",
  "below_zero",
  "unexpected",
] as const satisfies readonly FindingKind[];

/** One JSON line of `npm run chaos`. */
export interface Report extends Readonly<Record<(typeof NAMED)[number], number>> {
  readonly store: Form;
  readonly seed: number;
  /** Requests that were answered completely. */
  readonly requests: number;
  readonly refused: number;
  readonly broken: number;
  readonly left_by_clients: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly lost_and_replayed: number;
  readonly payments: number;
  readonly balances_looked_at: number;
  readonly over_hold_absorbed_nano_usd: number;
  readonly out_of_balance: number;
  readonly unsettled: number;
  readonly dead_letters: number;
  /** Accounts that still have holds at the end; undefined if the run did not wait for it. */
  readonly holds_left: number | undefined;
  /** The number of all other findings of the judge. */
  readonly other: number;
  readonly seconds: number;
}

export interface Outcome {
  readonly report: Report;
  readonly good: boolean;
  /** Descriptions of what is wrong, for people. */
  readonly details: readonly string[];
}

/** If an outage lets no answers through, the next fault begins after this time. */
const FAULT_WAIT_MAX_MS = 10_000;
const LOOK_PAUSE_MS = 500;
const SETTLE_MAX_MS = 60_000;
/** By then the journal's first verification (settle/journal/verify.ts) has checked everything. */
const VERIFIED_AFTER_MS = 35_000;

/** Runs one chaos test and cleans up afterwards. @param aborted ends it early; it then rejects. */
export async function soak(options: SoakOptions, aborted?: AbortSignal): Promise<Outcome> {
  aborted?.throwIfAborted();
  await using scene = await prepare(options);
  aborted?.throwIfAborted();
  const { fleet, traffic } = scene;
  const startedMs = performance.now();
  const stopped = { now: false };
  const stop = (): void => {
    stopped.now = true;
  };
  aborted?.addEventListener("abort", stop);
  const clients = Array.from({ length: options.clients }, () => traffic.client(stopped));
  const paying = topUp(fleet, scene.accounts, scene.random(1), stopped);
  const watching = watchFunds(fleet, scene.random(2), stopped);
  const work = Promise.all([...clients, paying, watching]);
  const faults = await Promise.race([underFaults(scene, options, stopped), work.then(() => ({}))]).finally(() => {
    // The last kill happens under full traffic.
    if (stopped.now) return;
    return fleet.killAll().finally(stop);
  });
  await work;
  aborted?.throwIfAborted();
  await fleet.startAll();
  const payments = await paying;
  const watched = await watching;
  const ended = await whole(scene, { payments, lowest: watched.lowest }, options);
  return outcomeOf({ scene, options, faults, payments: payments.length, looks: watched.looks, ended, startedMs });
}

interface Scene extends AsyncDisposable {
  readonly store: ChaosStore;
  readonly fleet: Fleet;
  readonly accounts: readonly ChaosAccount[];
  readonly truth: Truth;
  readonly traffic: Traffic;
  /** Resolves after `wanted` answers, or after `limitMs`. */
  untilAnswered(wanted: number, limitMs: number): Promise<void>;
  /** A random generator for one purpose. */
  random(purpose: number): () => number;
}

async function prepare({ form, seed }: SoakOptions): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "tollgate-chaos-"));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const simulator = await startSimulator({ pace: { betweenMs: 1 } });
  stack.defer(() => simulator.close());
  const { start, gateways } = FORMS[form];
  const store = await start();
  stack.defer(() => store.stop());
  const places = { upstreamUrl: simulator.url, dir, store: store.setting };
  const fleet = new Fleet(Array.from({ length: gateways }, (_, number) => chaosConfig(places, number)));
  stack.defer(() => fleet.killAll());
  await fleet.startAll();
  const [first] = fleet.running;
  if (!first) throw new Error("no gateway runs");
  const accounts = await openAccounts(first);
  const truth = newTruth();
  const random = (purpose: number) => seeded(seed * 1_000 + purpose);
  let onAnswer = (): void => {};
  const untilAnswered = async (wanted: number, limitMs: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    // The timer must not delay the exit after an interrupt.
    const timer = setTimeout(resolve, Math.max(0, limitMs)).unref();
    onAnswer = () => {
      if (truth.answered.size >= wanted) resolve();
    };
    onAnswer();
    await promise;
    clearTimeout(timer);
  };
  const traffic = new Traffic({ fleet, accounts, truth, random: random(0), onAnswer: () => onAnswer() });
  stack.defer(() => traffic.close());
  const kept = stack.move();
  const dispose = () => kept.disposeAsync();
  return { store, fleet, accounts, truth, traffic, untilAnswered, random, [Symbol.asyncDispose]: dispose };
}

/** Runs the planned faults under traffic. Resolves with the number of faults of each kind after enough answers. */
async function underFaults(
  scene: Scene,
  { faults: count, requests, seconds, onFault }: SoakOptions,
  stopped: { readonly now: boolean },
): Promise<Record<string, number>> {
  const ofGateways = gatewayFaults(scene.fleet);
  const all = { ...ofGateways, ...scene.store.faults };
  const random = scene.random(3);
  const plan = planFaults(count, Object.keys(ofGateways), Object.keys(scene.store.faults), random);
  const done: Record<string, number> = {};
  const deadline = performance.now() + seconds * 1_000;
  const { answered } = scene.truth;
  const leftMs = (): number => deadline - performance.now();
  for (const [index, planned] of plan.entries()) {
    const wanted = Math.floor(((index + 1) * requests) / (plan.length + 1));
    await scene.untilAnswered(wanted, Math.min(leftMs(), FAULT_WAIT_MAX_MS));
    if (leftMs() <= 0 || stopped.now) break;
    onFault?.(planned.kinds, answered.size);
    await strike(planned, all, random);
    for (const kind of planned.kinds) done[kind] = (done[kind] ?? 0) + 1;
  }
  if (!stopped.now) await scene.untilAnswered(requests, leftMs());
  return done;
}

interface Ended {
  readonly judgement: Judgement;
  readonly unsettled: number;
  readonly deadLetters: number;
  readonly holding: number | undefined;
  readonly unbalanced: { readonly unbalanced: number; readonly words: string };
}

/** Waits until nothing is unsettled, missing or held, or until the time limit, and then judges. */
async function whole(
  scene: Scene,
  seen: { readonly payments: readonly Payment[]; readonly lowest: ReadonlyMap<string, bigint> },
  options: SoakOptions,
): Promise<Ended> {
  const { fleet, accounts, truth, traffic } = scene;
  const startedMs = performance.now();
  const { untilHoldsEnd } = options;
  const limitMs = startedMs + SETTLE_MAX_MS + (untilHoldsEnd ? HOLD_LIFE_MS : 0);
  const earliestMs = untilHoldsEnd ? startedMs + VERIFIED_AFTER_MS : 0;
  const [gateway] = fleet.running;
  if (!gateway) throw new Error("no gateway runs");
  for (;;) {
    const journals = await journalsOf(fleet.running);
    const held = untilHoldsEnd ? await holding(gateway, accounts) : [];
    const leftOver = { unsettled: journals.unsettled, dead_letters: journals.deadLetters };
    const judgement = await judgeRemains(gateway, { accounts, truth, ...seen, holding: held, leftOver });
    const nowMs = performance.now();
    if ((!judgement.findings.some(mayPass) && nowMs >= earliestMs) || nowMs >= limitMs) {
      const unbalanced = await verifyLedgers(gateway);
      return { judgement, ...journals, holding: untilHoldsEnd ? held.length : undefined, unbalanced };
    }
    await lasting(LOOK_PAUSE_MS);
    // An expired hold is removed by the account's next admission.
    if (nowMs >= startedMs + HOLD_LIFE_MS) await Promise.all(held.map((account) => traffic.ask(account)));
  }
}

/** Whether a finding may disappear with time, because a charge or payment is still on its way to the store. */
function mayPass({ kind }: Finding): boolean {
  return PASSING.has(kind);
}

const PASSING: ReadonlySet<FindingKind> = new Set([
  "missing",
  "payments_missing",
  "wrong_amount",
  "not_its_worth",
  "held",
  "left_over",
]);

function outcomeOf(parts: {
  scene: Scene;
  options: SoakOptions;
  faults: Readonly<Record<string, number>>;
  payments: number;
  looks: number;
  ended: Ended;
  startedMs: number;
}): Outcome {
  const { scene, options, ended } = parts;
  const { truth, fleet } = scene;
  const { findings, absorbed } = ended.judgement;
  fleet.read();
  const counts = countsOf(findings);
  const named = Object.fromEntries(NAMED.map((kind) => [kind, counts[kind]])) as Record<(typeof NAMED)[number], number>;
  // These have their own members in the report.
  const apart = counts.left_over + counts.held;
  const report: Report = {
    store: options.form,
    requests: truth.answered.size,
    faults: parts.faults,
    lost_and_replayed: fleet.restored.size,
    ...named,
    other: findings.length - apart - Object.values(named).reduce((sum, count) => sum + count, 0),
    out_of_balance: ended.unbalanced.unbalanced,
    unsettled: ended.unsettled,
    dead_letters: ended.deadLetters,
    holds_left: ended.holding,
    refused: truth.refused.size,
    broken: truth.cut,
    left_by_clients: truth.left,
    payments: parts.payments,
    balances_looked_at: parts.looks,
    over_hold_absorbed_nano_usd: Number(absorbed),
    seed: options.seed,
    seconds: Math.round((performance.now() - parts.startedMs) / 1_000),
  };
  const { words, unbalanced } = ended.unbalanced;
  const details = [...wordsOf(findings), ...(words === "" ? [] : [words])];
  return { report, good: findings.length === 0 && unbalanced === 0 && report.requests > 0, details };
}
