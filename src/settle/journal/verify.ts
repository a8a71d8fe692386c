/**
 * Acknowledged charges are looked for in the store once at 30 seconds and once at 10 minutes, and those that it does not
 * prove to have are sent again; a store of the process's own is asked for those of earlier processes only. When another
 * server answers for the store, all that it may have lost is sent (`give-back.ts`). That is what survives a failover that
 * lost its last second (docs/failure-model.md row B6, invariant 2). What cannot be brought to an end for reasons of its own
 * account is set aside and holds up nobody. What has been verified twice and is a day old is dropped.
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

interface VerifierParts extends Omit<ResendParts, "isFollowed"> {
  readonly log: JournalLog;
  readonly clock: Clock;
  /** Which server, and which of its lives, answers for the store; undefined when that is unknown. */
  readonly storeIdentity: () => Promise<string | undefined>;
  readonly shardOf?: ShardOf;
  /**
   * Whether the store is of this process alone, so that it cannot lack what it has acknowledged since the process began: there is no
   * server that another could take the place of, and what a machine that loses power takes, it takes with the process.
   */
  readonly isEmbedded?: boolean;
  /** Whether a change from one identity to the other may have lost more than the end: then all that is kept is sent. */
  readonly isWholeLoss?: (before: string, now: string) => boolean;
  /** While true nothing is sent and nothing is dropped. */
  readonly isPaused?: () => boolean;
  /** Another server answers; what it lacks is being sent. */
  readonly onIdentity: (before: string, now: string) => void;
  /** This server has been sent all that it must have, as far as a change of servers goes; what is set aside may be missing. */
  readonly onFollowed?: (identity: string) => void;
  readonly onError: (error: unknown) => void;
}

interface Verifier {
  /** One round; every second by itself once started. Never rejects. */
  tick(): Promise<void>;
  /** A round that begins after the call. False when it was cut short, as by a store that is away. */
  freshRound(): Promise<boolean>;
  /** Charges and writes that are set aside. */
  waiting(): number;
  start(): void;
  /** Resolves when the round that runs has ended. */
  stop(): Promise<void>;
}

export function createVerifier(parts: VerifierParts): Verifier {
  const { log, clock } = parts;
  const aside = new SetAside(clock);
  const passes = DELAYS_MS.map((delayMs, index) => {
    const from = log.progress.verified[index] ?? { segment: 0, offset: 0 };
    const ownFrom = parts.isEmbedded ? log.firstOwn : undefined;
    return new VerifyPass({ log, clock, delayMs, verify, verifyAdmin, ownFrom }, from);
  });
  let { identity, sureAtMs } = log.progress;
  /** The server that was last seen to answer; the one that is followed but for the time of a walk. */
  let answering = identity;
  /** Something may have been given back to the server that answers now, by a walk of an earlier process perhaps. */
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
  let noted = "";
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
    const askedAtMs = clock.wallMs();
    const now = await parts.storeIdentity();
    if (now === undefined) return;
    answering = now;
    if (now !== identity && identity !== undefined) await walk(identity, now);
    hasGivenBack = false;
    sureAtMs = askedAtMs;
    if (now === identity) return;
    // Only now: a walk that was cut short begins again.
    identity = now;
    parts.onFollowed?.(now);
  }

  async function walk(before: string, now: string): Promise<void> {
    parts.onIdentity(before, now);
    const isWhole = hasGivenBack || parts.isWholeLoss?.(before, now) === true;
    hasGivenBack = true;
    await giveBack(Math.min(clock.wallMs(), sureAtMs ?? Number.NEGATIVE_INFINITY), {
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
      // Or a walk for which there is no room would never end.
      if (aside.isFull) await aside.tryAgain(resend);
      throw error;
    });
    await demandSame(now, parts.storeIdentity);
  }

  function note(): void {
    const verified = passes.map(verifiedBy);
    const progress: Progress = { verified, identity, sureAtMs };
    // Not the offsets: they move with the notes themselves.
    const news = JSON.stringify([identity, passes.map((pass, at) => [pass.count, verified[at]?.segment])]);
    if (news === noted) return;
    noted = news;
    log.note(progress);
  }

  /** A later process begins again with what is set aside. */
  function verifiedBy({ verified }: VerifyPass): JournalPosition {
    const oldest = aside.oldestSegment ?? Number.POSITIVE_INFINITY;
    return oldest <= verified.segment ? { segment: oldest, offset: 0 } : verified;
  }

  async function round(): Promise<void> {
    if (parts.isPaused?.()) throw new StoreError("older", "verification is paused");
    await followIdentity();
    await aside.tryAgain(resend);
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
    waiting: () => aside.size,
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

/** Another server may have taken over while a walk was under way: it has some of what was sent and lacks the rest. */
async function demandSame(server: string, ask: VerifierParts["storeIdentity"]): Promise<void> {
  if ((await ask()) !== server) throw new StoreError("unavailable", "the store changed servers again");
}
