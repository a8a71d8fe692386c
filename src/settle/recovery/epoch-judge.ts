/**
 * Whether the mark that a part of the store shows belongs to the history that this gateway knows (docs/failure-model.md
 * row B12). Pure: `epoch.ts` asks the store and acts.
 */
import { EPOCH_PAST_MAX, type EpochMark } from "../../store/epoch.ts";

/**
 * Seconds that a store may lose and still go on at once, as the journals give back what they hold. A failover or a
 * restart loses the few seconds that were not replicated or synced. A store that has lost more was put back by
 * somebody.
 */
export const LOSS_ALLOWED_S = 60;

/** What this gateway remembers of a part. */
export interface KnownEpoch {
  readonly id: string;
  readonly count: number;
  /** The count at which the part last went back, within what is allowed; 0 when it never did. */
  readonly base: number;
  readonly past: readonly string[];
}

/**
 * `empty`: nothing is there. `older`: our history, cut short. `another`: a history that does not continue ours. `told`:
 * another gateway has found one of these.
 */
type LossKind = "empty" | "older" | "another" | "told";

export interface Loss {
  readonly part: number;
  readonly kind: LossKind;
  readonly known: KnownEpoch | undefined;
  readonly found: EpochMark | undefined;
}

type EpochVerdict = { readonly known: KnownEpoch } | { readonly loss: LossKind };

/** @param known undefined: this gateway has no memory of the part, and takes it as it is. */
export function judgeEpoch(known: KnownEpoch | undefined, found: EpochMark | undefined): EpochVerdict {
  if (!found) return { loss: "empty" };
  const { id, count, past, stopped } = found;
  // An operator may have confirmed a loss at another gateway.
  const isSame = id === known?.id;
  if (known && !isSame && !past.includes(known.id)) return { loss: known.past.includes(id) ? "older" : "another" };
  if (known && isSame && count < known.count - LOSS_ALLOWED_S) return { loss: "older" };
  if (stopped) return { loss: "told" };
  const base = !known || !isSame ? 0 : count < known.count ? count : known.base;
  return { known: { id, count, base, past } };
}

/** Whether the history that is there is ours, so that other gateways of ours must learn of the loss. */
export function isOurs({ known, found }: Loss): boolean {
  return known !== undefined && found !== undefined && (known.id === found.id || known.past.includes(found.id));
}

/**
 * The ids that a new history names as its past: that of the store now and the one that we knew, so that gateways which
 * know either one accept it.
 */
export function pastOf({ known, found }: Loss): readonly string[] {
  const ids = [known, found].flatMap((epoch) => (epoch ? [epoch.id, ...epoch.past] : []));
  return [...new Set(ids)].slice(0, EPOCH_PAST_MAX);
}
