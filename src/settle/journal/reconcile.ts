/**
 * Another server answers for the store: it may lack the end of its history, and only the end. First every administrative
 * write that is kept is done again, oldest first: a charge needs its account, and a balance its top-up, or the charge
 * would be absorbed. Then, from the newest ACK back, every charge is sent again until one is found that the store still
 * has and that is old enough: what was acknowledged before that one was made is there as well (docs/failure-model.md
 * invariant 36).
 */
import type { RequestId } from "../../values/request-id.ts";
import type { AdminRecord } from "../journal.ts";
import { AbsentError } from "../recovery/absences.ts";
import { type JournalFrame, RECORD } from "./frame.ts";
import type { JournalLog } from "./open.ts";
import type { ShardOf } from "./pass.ts";
import { type ChargePayload, decodeAck, decodeAdmin, decodeCharge } from "./payload.ts";
import { scan } from "./segments.ts";

/** Settlements that are sent at one time: few, so that they do not delay requests. */
export const SENT_AT_ONCE = 32;
/** By how much a clock may be set back while the times of records still show their order. */
const DISORDER_MS = 5_000;

export type Verified = "present" | "restored" | "unknown";

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
export interface Waiting {
  readonly writes: readonly AdminRecord[];
  readonly charges: readonly ChargePayload[];
}

/**
 * @param sinceMs until when the server before is known to have answered. A later charge that is found present proves
 *   nothing: another server may have taken it while nobody had noticed, because the process was down or frozen.
 * @returns what waits for another gateway's journal, or nobody's. Rejects as `verify` and the disk do; then begin
 *   again.
 */
export async function reconcile(sinceMs: number, parts: ReconcileParts): Promise<Waiting> {
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
      if (wanted.length >= SENT_AT_ONCE) await Promise.all(wanted.splice(0).map(send));
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
