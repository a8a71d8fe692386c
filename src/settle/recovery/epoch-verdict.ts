/**
 * Whether the mark that a part of the store shows belongs to the history that this gateway knows (docs/failure-model.md
 * row B12). Pure: what asks the store and acts is `epoch.ts`.
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
  /** How often it did; undefined when it never did, and where a file says nothing of it. */
  readonly times?: number;
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
  if (!known || !isSame) return { known: { id, count, base: 0, past } };
  if (count < known.count)
    return { known: { id, count, base: count, times: (known.times ?? saidByBase(known)) + 1, past } };
  const { base, times } = known;
  return { known: { id, count, base, ...(times !== undefined && { times }), past } };
}

/** How often a part went back as far as its base says it: that is all that a file of a version has which did not count. */
function saidByBase({ base }: KnownEpoch): number {
  return base > 0 ? 1 : 0;
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

/** A part's second return to the same place is another life than the first; what its base says alone has the name that it had. */
export function lifeOf(epoch: KnownEpoch | undefined): string {
  const place = `${epoch?.id}@${epoch?.base}`;
  return epoch?.times !== undefined && epoch.times > saidByBase(epoch) ? `${place}*${epoch.times}` : place;
}
