/**
 * Acknowledged charges are looked for in the store once at 30 seconds and once at 10 minutes, and those that it does not
 * prove to have are sent again, as all of them are when another server answers for the store. That is what survives a
 * failover that lost its last second (docs/failure-model.md row B6, invariant 2). What has been verified twice and is a day
 * old is dropped.
 */

import { type Store, StoreError } from "../../store/contract.ts";
import type { SettleAnswer, SettleAsk } from "../../store/settlement.ts";
import type { AccountTag } from "../../values/key.ts";
import type { Clock } from "../../values/time.ts";
import type { AdminRecord } from "../journal.ts";
import { type Absences, AbsentError } from "../recovery/absences.ts";
import { type DeadLetters, isNothing, letterFor } from "./dead-letters.ts";
import type { JournalLog } from "./open.ts";
import { type ShardOf, VerifyPass } from "./pass.ts";
import {
  type ChargePayload,
  decodeCharge,
  type JournalPosition,
  type Progress,
  type RecordedCharge,
} from "./payload.ts";
import { reconcile, SENT_AT_ONCE, type Verified, type Waiting } from "./reconcile.ts";

const DELAYS_MS = [30_000, 600_000] as const;
const EVERY_MS = 1_000;

interface VerifierParts {
  readonly log: JournalLog;
  readonly store: Pick<Store, "settle" | "settledAmounts">;
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

  async function verify(charges: readonly RecordedCharge[]): Promise<void> {
    const missing = await unproven(store, charges);
    for (const { tag } of charges) if (!missing.has(tag)) parts.absences?.found(tag);
    const again = [...missing.values()].flat();
    for (let at = 0; at < again.length; at += SENT_AT_ONCE) {
      const sent = again.slice(at, at + SENT_AT_ONCE).map(async ({ record }) => {
        const charge = decodeCharge(record);
        if (charge && (await settleAgain(charge, true)) === "restored") hasGivenBack = true;
      });
      await Promise.all(sent);
    }
  }

  /** @param bury whether an account that is not there makes a dead letter of the charge. */
  async function settleAgain({ ask, orphan }: ChargePayload, bury: boolean): Promise<Verified> {
    if (isNothing(ask)) return "present";
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
      await demandSame(now, parts.storeIdentity);
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
    await demandSame(now, parts.storeIdentity);
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

/**
 * By account, those of some charges that the store does not prove to have as they are. Most are there, and a look for many
 * marks takes a tenth of what as many settlements do.
 */
async function unproven(
  store: Pick<Store, "settledAmounts">,
  charges: readonly RecordedCharge[],
): Promise<ReadonlyMap<AccountTag, readonly RecordedCharge[]>> {
  const looks = [...Map.groupBy(charges, ({ tag }) => tag)].map(async ([tag, some]) => {
    const amounts = await store.settledAmounts(
      tag,
      some.map(({ requestId }) => requestId),
    );
    return [tag, some.filter(({ amount }, at) => amounts[at] !== amount)] as const;
  });
  return new Map((await Promise.all(looks)).filter(([, missing]) => missing.length > 0));
}

/** Another server may have taken over while a walk was under way: it has some of what was sent and lacks the rest. */
async function demandSame(server: string, ask: VerifierParts["storeIdentity"]): Promise<void> {
  if ((await ask()) !== server) throw new StoreError("unavailable", "the store changed servers again");
}
