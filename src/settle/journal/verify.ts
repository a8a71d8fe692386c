/**
 * Acknowledged charges are sent again: once at 30 seconds, once at 10 minutes, and at once when another server answers
 * for the store; to a store of this process only those whose marks are gone. That is what survives a failover that lost its
 * last second (docs/failure-model.md row B6, invariant 2). What has been verified twice and is a day old is dropped.
 */

import { type Store, StoreError } from "../../store/contract.ts";
import type { SettleAnswer, SettleAsk } from "../../store/settlement.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { Clock } from "../../values/time.ts";
import type { AdminRecord } from "../journal.ts";
import { type Absences, AbsentError } from "../recovery/absences.ts";
import { type DeadLetters, isNothing, letterFor } from "./dead-letters.ts";
import { type JournalFrame, RECORD } from "./frame.ts";
import type { JournalLog } from "./open.ts";
import { type ShardOf, VERIFY_AT_ONCE, VerifyPass } from "./pass.ts";
import {
  type ChargePayload,
  decodeAck,
  decodeAdmin,
  decodeCharge,
  type JournalPosition,
  type Progress,
} from "./payload.ts";
import { scan } from "./segments.ts";

const DELAYS_MS = [30_000, 600_000] as const;
const EVERY_MS = 1_000;

interface VerifierParts {
  readonly log: JournalLog;
  readonly store: Pick<Store, "settle" | "settledAmount">;
  readonly clock: Clock;
  readonly deadLetters: Pick<DeadLetters, "add">;
  /** Doubts that an account is not there; without it that is believed at once. */
  readonly absences?: Absences;
  /** Which server, and which of its lives, answers for the store; undefined when that is unknown. */
  readonly storeIdentity: () => Promise<string | undefined>;
  /** Does an acknowledged administrative write again, which changes nothing when the store still has it. */
  readonly applyAdmin?: (record: AdminRecord) => Promise<void>;
  readonly shardOf?: ShardOf;
  /** Whether a change from one identity to the other may have lost more than the end: then all that is kept is sent. */
  readonly isWholeLoss?: (before: string, now: string) => boolean;
  /** While true nothing is sent and nothing is dropped. */
  readonly isPaused?: () => boolean;
  /** The store had lost this charge, and has it again. */
  readonly onRestored: (ask: SettleAsk, answer: SettleAnswer) => void;
  /** Another server answers; what it lacks is being sent. */
  readonly onIdentity: (before: string, now: string) => void;
  /** All that can be sent to this server now has been; what waits for another gateway's journal may be missing. */
  readonly onSent?: (identity: string) => void;
  /** This server has all that it must have, as far as a change of servers goes. */
  readonly onFollowed?: (identity: string) => void;
  readonly onError: (error: unknown) => void;
}

interface Verifier {
  /** One round; every second by itself once started. Never rejects. */
  tick(): Promise<void>;
  /** A round that begins after the call. False when it was cut short, as by a store that is away. */
  freshRound(): Promise<boolean>;
  start(): void;
  /** Resolves when the round that runs has ended. */
  stop(): Promise<void>;
}

/** What a walk to a server has left over. */
interface Walk {
  readonly server: string;
  waiting: Waiting;
}

export function createVerifier(parts: VerifierParts): Verifier {
  const { log, store, clock, deadLetters } = parts;
  const verifyAdmin = async (record: AdminRecord): Promise<void> => parts.applyAdmin?.(record);
  const passes = DELAYS_MS.map((delayMs, index) => {
    const from = log.progress.verified[index] ?? { segment: 0, offset: 0 };
    const verify = async (charge: ChargePayload): Promise<void> => {
      if ((await settleAgain(charge, true)) === "restored") hasGivenBack = true;
    };
    return new VerifyPass({ log, clock, delayMs, verify, verifyAdmin }, from);
  });
  let { identity, sureAtMs } = log.progress;
  /** The server that was last seen to answer; the one that is followed but for the time of a walk. */
  let answering = identity;
  /** Something may have been given back to the server that answers now, by a walk of an earlier process perhaps. */
  let hasGivenBack = true;
  let walked: Walk | undefined;
  let noted = "";
  let running: Promise<boolean> | undefined;
  let cancel: () => void = () => {};
  let stopped = false;

  /** @param bury whether an account that is not there makes a dead letter of the charge. */
  async function settleAgain({ ask, orphan }: ChargePayload, bury: boolean): Promise<Verified> {
    if (isNothing(ask)) return "present";
    // Most are: a look for the mark takes a third of what the whole settlement does.
    const recorded = store.settledAmount?.(ask.tag, ask.requestId);
    if (recorded !== undefined && (recorded === ask.amount || recorded === ask.leftUnpaid?.amount)) {
      parts.absences?.found(ask.tag);
      return "present";
    }
    const answer = await store.settle(ask).catch((error: unknown) => {
      if (error instanceof StoreError) throw error;
      return { defect: String(error) };
    });
    const outcome = "defect" in answer ? "defect" : answer.outcome;
    if (outcome === "unknown_account" && !bury) return "unknown";
    if (outcome === "unknown_account" && (await parts.storeIdentity()) !== answering) {
      throw new StoreError("unavailable", "another server answers for the store");
    }
    const letter = letterFor(ask, orphan, answer);
    if (letter?.reason === "unknown_account") parts.absences?.doubt(ask.tag, "the account of a charge is not there");
    else parts.absences?.found(ask.tag);
    if (letter) await deadLetters.add(letter);
    if ("defect" in answer || answer.outcome !== "settled") return "present";
    parts.onRestored(ask, answer);
    log.restored(ask.requestId);
    return "restored";
  }

  async function followIdentity(): Promise<void> {
    const askedAtMs = clock.wallMs();
    const now = await parts.storeIdentity();
    if (now === undefined) return;
    answering = now;
    if (now !== identity && identity !== undefined) {
      if (walked?.server !== now) walked = { server: now, waiting: await walk(identity, now) };
      await sendWaiting(walked);
      await demandSame(now);
    }
    walked = undefined;
    hasGivenBack = false;
    sureAtMs = askedAtMs;
    if (now === identity) return;
    // Only now: a walk that was cut short begins again.
    identity = now;
    parts.onFollowed?.(now);
  }

  /** @returns what this server could not take yet. */
  async function walk(before: string, now: string): Promise<Waiting> {
    parts.onIdentity(before, now);
    const isWhole = hasGivenBack || parts.isWholeLoss?.(before, now) === true;
    hasGivenBack = true;
    const verify = (charge: ChargePayload) => settleAgain(charge, false);
    const waiting = await reconcile(Math.min(clock.wallMs(), sureAtMs ?? Number.NEGATIVE_INFINITY), {
      log,
      verify,
      verifyAdmin,
      shardOf: parts.shardOf,
      isWhole,
    });
    await demandSame(now);
    parts.onSent?.(now);
    return waiting;
  }

  /** None holds another up. Rejects with AbsentError while what one of them needs may yet come back. */
  async function sendWaiting(walk: Walk): Promise<void> {
    let absence: AbsentError | undefined;
    const isAbsent = (error: unknown): true => {
      if (!(error instanceof AbsentError)) throw error;
      absence = error;
      return true;
    };
    const writes: AdminRecord[] = [];
    for (const record of walk.waiting.writes) {
      if (await verifyAdmin(record).then(() => false, isAbsent)) writes.push(record);
    }
    const charges: ChargePayload[] = [];
    for (const charge of walk.waiting.charges) {
      if (await settleAgain(charge, true).then(() => false, isAbsent)) charges.push(charge);
    }
    walk.waiting = { writes, charges };
    if (absence) throw absence;
  }

  /** Another server may have taken over while a walk was under way: it has some of what was sent and lacks the rest. */
  async function demandSame(server: string): Promise<void> {
    if ((await parts.storeIdentity()) !== server)
      throw new StoreError("unavailable", "the store changed servers again");
  }

  function note(): void {
    const verified = passes.map((pass): JournalPosition => pass.verified);
    const progress: Progress = { verified, identity, sureAtMs };
    // Not the offsets: they move with the notes themselves.
    const news = JSON.stringify([identity, passes.map((pass) => [pass.count, pass.verified.segment])]);
    if (news === noted) return;
    noted = news;
    log.note(progress);
  }

  async function round(): Promise<void> {
    if (parts.isPaused?.()) throw new StoreError("older", "verification is paused");
    await followIdentity();
    for (const pass of passes) await pass.step();
    note();
    await log.clean(Math.min(...passes.map((pass) => pass.verified.segment)));
  }

  function tick(): Promise<void> {
    return freshOrRunning().then(() => undefined);
  }

  function freshOrRunning(): Promise<boolean> {
    running ??= round()
      .then(() => true)
      .catch((error: unknown) => {
        if (!parts.isPaused?.()) parts.onError(error);
        return false;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  }

  async function freshRound(): Promise<boolean> {
    await running;
    return freshOrRunning();
  }

  function again(): void {
    if (!stopped) cancel = clock.after(EVERY_MS, () => void tick().then(again));
  }

  return {
    tick,
    freshRound,
    start() {
      void tick().then(again);
    },
    async stop() {
      stopped = true;
      cancel();
      await running;
    },
  };
}

/*
 * Another server answers for the store: it may lack the end of its history, and only the end. First every administrative
 * write that is kept is done again, oldest first: a charge needs its account, and a balance its top-up, or the charge
 * would be absorbed. Then, from the newest ACK back, every charge is sent again until one is found that the store still
 * has and that is old enough: what was acknowledged before that one was made is there as well (docs/failure-model.md
 * invariant 36).
 */

/** By how much a clock may be set back while the times of records still show their order. */
const DISORDER_MS = 5_000;

type Verified = "present" | "restored" | "unknown";

interface ReconcileParts {
  readonly log: Pick<JournalLog, "segments" | "read">;
  /** Rejects with StoreError while the store is away. `unknown`: the account is not there. */
  readonly verify: (charge: ChargePayload) => Promise<Verified>;
  /** Rejects with AbsentError while what the write needs may yet come back. */
  readonly verifyAdmin: (record: AdminRecord) => Promise<void>;
  /**
   * Which server holds an account, where there are several: each has a history of its own, and the walk then goes
   * through all that is kept. Without it the first charge found present ends the walk.
   */
  readonly shardOf: ShardOf | undefined;
  /**
   * Sends all that is kept: what is found present proves nothing when something has been given back before, as by a walk
   * that was cut short.
   */
  readonly isWhole: boolean;
}

interface Wanted {
  readonly charge: ChargePayload;
  /** The store took it at some time between the two. */
  readonly finalAtMs: number;
  readonly ackedAtMs: number;
}

/** What the store cannot take yet, since what it needs is in no journal that was replayed by now. */
interface Waiting {
  readonly writes: readonly AdminRecord[];
  readonly charges: readonly ChargePayload[];
}

/**
 * @param sinceMs until when the server before is known to have answered. A later charge that is found present proves
 *   nothing: another server may have taken it while nobody had noticed, because the process was down or frozen.
 * @returns what waits for another gateway's journal, or nobody's. Rejects as `verify` and the disk do; then begin
 *   again.
 */
async function reconcile(sinceMs: number, parts: ReconcileParts): Promise<Waiting> {
  const acked = new Map<RequestId, number>();
  const horizons = new Map<string, number>();
  const unknown: ChargePayload[] = [];
  let oldestRestoredMs = sinceMs;
  const shardOf = ({ ask }: ChargePayload): string => parts.shardOf?.(ask.tag) ?? "";
  const horizonOf = (shard: string): number => horizons.get(shard) ?? Number.NEGATIVE_INFINITY;

  let isWhole = parts.isWhole;
  let laterMs = Number.POSITIVE_INFINITY;

  const send = async ({ charge, finalAtMs, ackedAtMs }: Wanted): Promise<void> => {
    const verified = await parts.verify(charge);
    if (verified === "unknown") unknown.push(charge);
    else if (verified === "restored") oldestRestoredMs = Math.min(oldestRestoredMs, ackedAtMs);
    else if (!isWhole && ackedAtMs < oldestRestoredMs - DISORDER_MS) {
      horizons.set(shardOf(charge), Math.max(horizonOf(shardOf(charge)), finalAtMs));
    }
  };

  const writes = await doAdminAgain(parts);
  for await (const frames of newestFirst(parts.log)) {
    const wanted: Wanted[] = [];
    for (const { type, payload, atMs } of frames) {
      // The clock went back while this was written: times say nothing of the order any more.
      if (atMs > laterMs + DISORDER_MS) {
        isWhole = true;
        horizons.clear();
      }
      laterMs = Math.min(laterMs, atMs);
      const passed = parts.shardOf === undefined && atMs <= horizonOf("");
      if (type === RECORD.ack && !passed) {
        const ack = decodeAck(payload);
        // Its newest ACK counts: what was given back came after everything that the store had by then.
        if (ack?.outcome === "settled" && !acked.has(ack.id)) acked.set(ack.id, atMs);
      } else if (type === RECORD.final) {
        const charge = decodeCharge(payload);
        const ackedAtMs = charge && acked.get(charge.ask.requestId);
        if (!charge || ackedAtMs === undefined) continue;
        acked.delete(charge.ask.requestId);
        if (ackedAtMs > horizonOf(shardOf(charge))) wanted.push({ charge, finalAtMs: atMs, ackedAtMs });
      }
      if (wanted.length >= VERIFY_AT_ONCE) await Promise.all(wanted.splice(0).map(send));
    }
    await Promise.all(wanted.map(send));
    // Charges that were acknowledged late are further back than their neighbours.
    for (const [id, atMs] of acked) if (parts.shardOf === undefined && atMs <= horizonOf("")) acked.delete(id);
    if (parts.shardOf === undefined && acked.size === 0 && horizons.has("")) break;
  }
  return { writes, charges: unknown };
}

/**
 * One after the other, in the order in which the store had them. One that lacks something holds no other up, or two
 * gateways could wait for each other. @returns those that lack something.
 */
async function doAdminAgain({ log, verifyAdmin }: ReconcileParts): Promise<AdminRecord[]> {
  const waiting: AdminRecord[] = [];
  for (const { number, end } of [...log.segments()]) {
    for (const { type, payload } of scan(await log.read(number, 0, end)).frames) {
      const record = type === RECORD.admin ? decodeAdmin(payload) : undefined;
      if (!record) continue;
      await verifyAdmin(record).catch((error: unknown) => {
        if (!(error instanceof AbsentError)) throw error;
        waiting.push(record);
      });
    }
  }
  return waiting;
}

async function* newestFirst(log: ReconcileParts["log"]): AsyncGenerator<readonly JournalFrame[]> {
  for (const { number, end } of [...log.segments()].reverse()) {
    yield scan(await log.read(number, 0, end)).frames.toReversed();
  }
}
