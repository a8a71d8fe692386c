/**
 * Verification: every acknowledged charge is looked up in the store 30 seconds and 10 minutes after its ACK. Charges
 * that the store does not prove to have are resent. An embedded store is asked only for charges of earlier processes.
 * If a different server answers for the store, everything that it may have lost is sent (`give-back.ts`). So charges
 * survive a failover that lost its last second (docs/failure-model.md row B6, invariant 2). A charge that cannot be
 * finished because of its own account is set aside and does not hold up others. What has been verified twice and is a
 * day old is dropped.
 */

import { StoreError } from "../../store/contract.ts";
import type { Clock } from "../../values/time.ts";
import type { AdminRecord } from "../journal.ts";
import { giveBack, type ShardOf } from "./give-back.ts";
import type { JournalLog } from "./open.ts";
import { VerifyPass } from "./pass.ts";
import type { JournalPosition, Progress } from "./payload.ts";
import { createResend, type ResendParts } from "./resend.ts";
import { type PlacedCharge, SetAside } from "./set-aside.ts";

const DELAYS_MS = [30_000, 600_000] as const;
const EVERY_MS = 1_000;
/** How often the journal's time is written while a record waits: a later process goes on from there. */
const NOTE_EVERY_MS = 10_000;

interface VerifierParts extends Omit<ResendParts, "isFollowed"> {
  readonly log: JournalLog;
  readonly clock: Clock;
  /** Identifies the server, the history and its incarnation that answer for the store; undefined while unknown. */
  readonly storeIdentity: () => Promise<string | undefined>;
  readonly shardOf?: ShardOf;
  /**
   * Whether the store belongs to this process alone. It then has everything that it acknowledged since the process
   * started: no other server can replace it, and a power failure that costs it data also ends the process.
   */
  readonly isEmbedded?: boolean;
  /**
   * Whether a change from one identity to the other may have lost more than the end: then everything that is kept is
   * sent.
   */
  readonly isWholeLoss?: (before: string, now: string) => boolean;
  /** While true nothing is sent and nothing is dropped. */
  readonly isPaused?: () => boolean;
  /** Called when a different server answers; what it lacks is being sent. */
  readonly onIdentity: (before: string, now: string) => void;
  /**
   * Called when this server has been sent everything that a change of servers may have lost; what is set aside may
   * still be missing.
   */
  readonly onFollowed?: (identity: string) => void;
  readonly onError: (error: unknown) => void;
}

interface Verifier {
  /** Runs one round; after `start` this happens every second. Never rejects. */
  tick(): Promise<void>;
  /**
   * Runs a round that begins after the call. False if it was cut short, for example because the store is unavailable.
   */
  freshRound(): Promise<boolean>;
  /**
   * Whether the store has been sent everything that it may have lost before this process started; what is set aside may
   * still be missing.
   */
  hasFollowed(): boolean;
  /** Number of charges and writes that are set aside. */
  waiting(): number;
  start(): void;
  /** Resolves when the running round has ended. */
  stop(): Promise<void>;
}

export function createVerifier(parts: VerifierParts): Verifier {
  const { log, clock } = parts;
  const aside = new SetAside(clock);
  const passes = DELAYS_MS.map((delayMs, index) => {
    const from = log.progress.verified[index] ?? { segment: 0, offset: 0 };
    const ownFrom = parts.isEmbedded ? log.firstOwn : undefined;
    return new VerifyPass({ log, delayMs, verify, verifyAdmin, ownFrom }, from);
  });
  let { identity, sureAtMs } = log.progress;
  /** The server that answered last. It differs from `identity` only during a walk. */
  let answering = identity;
  /**
   * Whether something may have been restored to the server that answers now, perhaps by a walk of an earlier process.
   */
  let hasGivenBack = true;
  const resend = createResend({
    ...parts,
    async isFollowed() {
      return (await parts.storeIdentity()) === answering;
    },
    onRestored(ask, answer) {
      hasGivenBack = true;
      log.restored(ask.requestId);
      parts.onRestored(ask, answer);
    },
  });
  let hasFollowed = false;
  let noted = "";
  let notedAtMs = log.nowMs();
  let running: Promise<boolean> | undefined;
  let cancel: () => void = () => {};
  let stopped = false;

  async function verify(placed: readonly PlacedCharge[]): Promise<void> {
    for (const charge of await resend.charges(placed)) aside.addCharge(charge);
  }

  async function verifyAdmin(record: AdminRecord, segment: number): Promise<void> {
    if (!(await resend.write(record))) aside.addWrite({ record, segment });
  }

  async function followIdentity(): Promise<void> {
    const askedAtMs = log.nowMs();
    const now = await parts.storeIdentity();
    if (now === undefined) return;
    answering = now;
    if (now !== identity && identity !== undefined) await walk(identity, now);
    hasGivenBack = false;
    sureAtMs = askedAtMs;
    hasFollowed = true;
    if (now === identity) return;
    // Set only here, so that a walk that was cut short starts again.
    identity = now;
    parts.onFollowed?.(now);
  }

  async function walk(before: string, now: string): Promise<void> {
    parts.onIdentity(before, now);
    const isWhole = hasGivenBack || parts.isWholeLoss?.(before, now) === true;
    hasGivenBack = true;
    await giveBack(sureAtMs ?? Number.NEGATIVE_INFINITY, {
      log,
      async verify(placed) {
        const verified = await resend.charge(placed);
        if (verified === "aside") aside.addCharge(placed);
        return verified;
      },
      verifyAdmin,
      shardOf: parts.shardOf,
      isWhole,
    }).catch(async (error: unknown) => {
      // Makes room: without it a walk that fills `aside` would never finish.
      if (aside.isFull) await aside.retry(resend);
      throw error;
    });
    await demandSame(now, parts.storeIdentity);
  }

  function note(): void {
    const verified = passes.map(verifiedBy);
    const progress: Progress = { verified, identity, sureAtMs };
    // Without the offsets, because each note moves them.
    const news = JSON.stringify([identity, passes.map((pass, at) => [pass.count, verified[at]?.segment])]);
    const isLate = passes.some(({ isWaiting }) => isWaiting) && log.nowMs() - notedAtMs >= NOTE_EVERY_MS;
    if (news === noted && !isLate && !stopped) return;
    noted = news;
    notedAtMs = log.nowMs();
    log.note(progress);
  }

  /** Where a later process resumes the pass: not after what is set aside. */
  function verifiedBy({ verified }: VerifyPass): JournalPosition {
    const oldest = aside.oldestSegment ?? Number.POSITIVE_INFINITY;
    return oldest <= verified.segment ? { segment: oldest, offset: 0 } : verified;
  }

  async function round(): Promise<void> {
    if (parts.isPaused?.()) throw new StoreError("older", "verification is paused");
    await followIdentity();
    await aside.retry(resend);
    for (const pass of passes) await pass.step();
    note();
    await log.clean(Math.min(...passes.map((pass) => verifiedBy(pass).segment)));
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
    hasFollowed: () => hasFollowed,
    waiting: () => aside.size,
    start() {
      void tick().then(again);
    },
    async stop() {
      stopped = true;
      cancel();
      await running;
      note();
    },
  };
}

/** Rejects if the server changed during a walk: the new one has some of what was sent and lacks the rest. */
async function demandSame(server: string, ask: VerifierParts["storeIdentity"]): Promise<void> {
  if ((await ask()) !== server) throw new StoreError("unavailable", "the store changed servers again");
}
