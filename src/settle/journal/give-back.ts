/**
 * Restores lost writes after a different server has taken over the store. The server may lack the end of its history,
 * and only the end.
 *
 * 1. Every administrative write that is kept is replayed, oldest first: a charge needs its account, and without its
 *    top-up the charge would be absorbed.
 * 2. From the newest ACK back, every charge is resent until one is found that the store still has and that is old
 *    enough. What was acknowledged before that charge was made is there as well (docs/failure-model.md invariant 36).
 */
import type { SettleAsk } from "../../store/settlement.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { AdminRecord } from "../journal.ts";
import { type JournalFrame, RECORD } from "./frame.ts";
import type { JournalLog } from "./open.ts";
import { decodeAck, decodeAdmin, readCharge } from "./payload.ts";
import { scan } from "./segments.ts";
import type { PlacedCharge } from "./set-aside.ts";

/** Settlements sent at the same time: few, so that they do not delay requests. */
export const SENT_AT_ONCE = 32;
/** If a record is older than the one before it by no more than this, their times still count as in order. */
const DISORDER_MS = 5_000;

/**
 * `present`: the store had the charge. `restored`: it has taken it now. `aside`: it cannot take the charge now, and
 * others must not wait for it. `nothing`: the answer does not show what the store has.
 */
export type Verified = "present" | "restored" | "aside" | "nothing";

/** Which part of a store holds an account. */
export type ShardOf = (tag: SettleAsk["tag"]) => string;

interface GiveBackParts {
  readonly log: Pick<JournalLog, "segments" | "read">;
  /** Rejects with StoreError while the store is unavailable. */
  readonly verify: (charge: PlacedCharge) => Promise<Verified>;
  /** Rejects with StoreError while the store is unavailable. */
  readonly verifyAdmin: (record: AdminRecord, segment: number) => Promise<void>;
  /**
   * Which server holds an account, if there are several. Each then has its own history, and the walk goes through all
   * records that are kept. Without it the first charge found present ends the walk.
   */
  readonly shardOf: ShardOf | undefined;
  /**
   * Sends everything that is kept. Needed if something was restored before, for example by a walk that was cut short: a
   * charge found present then proves nothing about earlier ones.
   */
  readonly isWhole: boolean;
}

interface Wanted {
  readonly placed: PlacedCharge;
  /** The store took the charge between these two times. */
  readonly finalAtMs: number;
  readonly ackedAtMs: number;
}

/**
 * Restores what the store lacks. Rejects with the errors of `verify` and of the disk; it must then be started again.
 * @param sinceMs until when the previous server is known to have answered. A later charge found present proves nothing:
 *   the new server may have taken it before this process noticed the change, because the process was down or frozen.
 */
export async function giveBack(sinceMs: number, parts: GiveBackParts): Promise<void> {
  const acked = new Map<RequestId, number>();
  const horizons = new Map<string, number>();
  let oldestRestoredMs = sinceMs;
  const shardOf = ({ charge }: PlacedCharge): string => parts.shardOf?.(charge.tag) ?? "";
  const horizonOf = (shard: string): number => horizons.get(shard) ?? Number.NEGATIVE_INFINITY;

  let isWhole = parts.isWhole;
  let laterMs = Number.POSITIVE_INFINITY;

  const send = async ({ placed, finalAtMs, ackedAtMs }: Wanted): Promise<void> => {
    const verified = await parts.verify(placed);
    if (verified === "restored") oldestRestoredMs = Math.min(oldestRestoredMs, ackedAtMs);
    if (verified === "present" && !isWhole && ackedAtMs < oldestRestoredMs - DISORDER_MS) {
      horizons.set(shardOf(placed), Math.max(horizonOf(shardOf(placed)), finalAtMs));
    }
  };

  await doAdminAgain(parts);
  for await (const { frames, segment } of newestFirst(parts.log)) {
    const wanted: Wanted[] = [];
    for (const { type, payload, atMs } of frames) {
      // A record was written again, or has the time of a clock that was set back: times no longer show the order.
      if (atMs > laterMs + DISORDER_MS) {
        isWhole = true;
        horizons.clear();
      }
      laterMs = Math.min(laterMs, atMs);
      const passed = parts.shardOf === undefined && atMs <= horizonOf("");
      if (type === RECORD.ack && !passed) {
        const ack = decodeAck(payload);
        // The charge's newest ACK counts: a charge that was restored came after everything that the store had at that
        // time.
        if (ack?.outcome === "settled" && !acked.has(ack.id)) acked.set(ack.id, atMs);
      } else if (type === RECORD.final) {
        const charge = readCharge(payload);
        const ackedAtMs = charge && acked.get(charge.requestId);
        if (!charge || ackedAtMs === undefined) continue;
        acked.delete(charge.requestId);
        const placed: PlacedCharge = { charge, segment };
        if (ackedAtMs > horizonOf(shardOf(placed))) wanted.push({ placed, finalAtMs: atMs, ackedAtMs });
      }
      if (wanted.length >= SENT_AT_ONCE) await Promise.all(wanted.splice(0).map(send));
    }
    await Promise.all(wanted.map(send));
    // The FINALs of charges acknowledged late are further back than those of their neighbors.
    for (const [id, atMs] of acked) if (parts.shardOf === undefined && atMs <= horizonOf("")) acked.delete(id);
    if (parts.shardOf === undefined && acked.size === 0 && horizons.has("")) break;
  }
}

/** One at a time, in the order in which the store took them. */
async function doAdminAgain({ log, verifyAdmin }: GiveBackParts): Promise<void> {
  for (const { number, end } of [...log.segments()]) {
    for (const { type, payload } of scan(await log.read(number, 0, end)).frames) {
      const record = type === RECORD.admin ? decodeAdmin(payload) : undefined;
      if (record) await verifyAdmin(record, number);
    }
  }
}

interface SegmentFrames {
  readonly frames: readonly JournalFrame[];
  readonly segment: number;
}

async function* newestFirst(log: GiveBackParts["log"]): AsyncGenerator<SegmentFrames> {
  for (const { number, end } of [...log.segments()].reverse()) {
    yield { frames: scan(await log.read(number, 0, end)).frames.toReversed(), segment: number };
  }
}
