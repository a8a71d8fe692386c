/**
 * When a segment may go: everything in it is acknowledged, verified twice and older than the retention. Under pressure
 * history gives way before service does; a charge without an ACK never does.
 */
import type { Entry } from "./entry.ts";
import type { Segment } from "./segments.ts";

/** Acknowledged records are kept so long, milliseconds: how far back a store may lose data and get it again. */
const RETENTION_MS = 24 * 3_600_000;
/** From this share of `bytesMax` on, acknowledged records go before their time. */
export const PRESSURE_RATIO = 0.7;

interface RetentionFacts {
  /** Oldest first; the one being written is never taken. */
  readonly segments: readonly Segment[];
  readonly writing: number;
  /** Segments before this one are verified twice. */
  readonly verifiedBefore: number;
  /** Records that nobody has acknowledged. */
  readonly live: Iterable<Entry>;
  readonly nowMs: number;
  readonly bytesTotal: number;
  readonly bytesMax: number;
}

interface RetentionVerdict {
  /** Empty ones, and the oldest ones in a row, so that no ACK goes before its FINAL. */
  readonly remove: readonly Segment[];
  /** Whether some of them had not been verified twice. */
  readonly early: boolean;
  /** Records that hold the oldest segment while space is short: written again, they let it go. */
  readonly carry: readonly Entry[];
}

export function judge(facts: RetentionFacts): RetentionVerdict {
  const { segments, writing, verifiedBefore, nowMs, bytesMax } = facts;
  const pinned = pinnedBy(facts.live);
  const remove: Segment[] = [];
  let carry: readonly Entry[] | undefined;
  let early = false;
  let blocked = false;
  let bytesLeft = facts.bytesTotal;
  for (const segment of segments) {
    if (segment.number === writing) break;
    const pressed = bytesLeft > bytesMax * PRESSURE_RATIO;
    const pins = pinned.get(segment.number);
    const verified = segment.number < verifiedBefore;
    const aged = verified && segment.lastAtMs + RETENTION_MS <= nowMs;
    if (pins && pressed) carry ??= pins;
    blocked ||= pins !== undefined || (segment.used && !aged && !pressed);
    if (segment.used && (blocked || pins)) continue;
    early ||= segment.used && !verified;
    bytesLeft -= segment.bytes;
    remove.push(segment);
  }
  return { remove, early, carry: carry ?? [] };
}

function pinnedBy(live: Iterable<Entry>): Map<number, Entry[]> {
  const pinned = new Map<number, Entry[]>();
  for (const entry of live) {
    const entries = pinned.get(entry.segment) ?? [];
    entries.push(entry);
    pinned.set(entry.segment, entries);
  }
  return pinned;
}
