/**
 * Another server answers for the store: it may lack the end of its history, and only the end. First every administrative
 * write that is kept is done again, oldest first: a charge needs its account, and a balance its top-up, or the charge
 * would be absorbed. Then, from the newest ACK back, every charge is sent again until one is found that the store still
 * has and that is old enough: what was acknowledged before that one was made is there as well (docs/failure-model.md
 * invariant 36).
 */
import type { SettleAsk } from "../../store/settlement.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { AdminRecord } from "../journal.ts";
import { type JournalFrame, RECORD } from "./frame.ts";
import type { JournalLog } from "./open.ts";
import { decodeAck, decodeAdmin, readCharge } from "./payload.ts";
import { scan } from "./segments.ts";
import type { PlacedCharge } from "./set-aside.ts";

/** Settlements that are sent at one time: few, so that they do not delay requests. */
export const SENT_AT_ONCE = 32;
/** By how much a clock may be set back while the times of records still show their order. */
const DISORDER_MS = 5_000;

/**
 * `aside`: the store cannot take the charge now, and others must not wait for it. `nothing`: what was asked says nothing of what
 * the store has.
 */
export type Verified = "present" | "restored" | "aside" | "nothing";

/** Which part of a store holds an account. */
export type ShardOf = (tag: SettleAsk["tag"]) => string;

interface GiveBackParts {
  readonly log: Pick<JournalLog, "segments" | "read">;
  /** Rejects with StoreError while the store is away. */
  readonly verify: (charge: PlacedCharge) => Promise<Verified>;
  /** The same. */
  readonly verifyAdmin: (record: AdminRecord, segment: number) => Promise<void>;
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
  readonly placed: PlacedCharge;
  /** The store took it at some time between the two. */
  readonly finalAtMs: number;
  readonly ackedAtMs: number;
}

/**
 * @param sinceMs until when the server before is known to have answered. A later charge that is found present proves
 *   nothing: another server may have taken it while nobody had noticed, because the process was down or frozen.
 * @returns nothing; rejects as `verify` and the disk do, and is then to be begun again.
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
    // Charges that were acknowledged late are further back than their neighbours.
    for (const [id, atMs] of acked) if (parts.shardOf === undefined && atMs <= horizonOf("")) acked.delete(id);
    if (parts.shardOf === undefined && acked.size === 0 && horizons.has("")) break;
  }
}

/** One after the other, in the order in which the store had them. */
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
