/**
 * Judges whether the mark that a part of the store has belongs to the history that this gateway knows
 * (docs/failure-model.md row B12). Pure; `epoch.ts` asks the store and acts.
 */
import { EPOCH_PAST_MAX, type EpochMark } from "../../store/epoch.ts";

/**
 * Seconds of data that a store may lose and still continue at once, because the journals restore them. A failover or a
 * restart loses the few seconds that were not replicated or synced. A store that has lost more was restored by someone.
 */
export const LOSS_ALLOWED_S = 60;

/** What this gateway remembers of a part. */
export interface KnownEpoch {
  readonly id: string;
  readonly count: number;
  /** The count at which the part last went back by an allowed amount; 0 if it never did. */
  readonly base: number;
  /** How often it did; undefined if it never did, or if the file does not say. */
  readonly times?: number;
  readonly past: readonly string[];
}

/**
 * `empty`: there is no mark. `older`: our history, but its end is missing. `another`: a history that does not continue
 * ours. `told`: another gateway has found one of these and stopped the part.
 */
type LossKind = "empty" | "older" | "another" | "told";

export interface Loss {
  readonly part: number;
  readonly kind: LossKind;
  readonly known: KnownEpoch | undefined;
  readonly found: EpochMark | undefined;
}

type EpochVerdict = { readonly known: KnownEpoch } | { readonly loss: LossKind };

/** @param known undefined: this gateway does not know the part and accepts it as it is. */
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

/** How often a part went back according to its base alone; files of versions without `times` have nothing more. */
function saidByBase({ base }: KnownEpoch): number {
  return base > 0 ? 1 : 0;
}

/** Whether the history found is ours, so that our other gateways must learn of the loss. */
export function isOurs({ known, found }: Loss): boolean {
  return known !== undefined && found !== undefined && (known.id === found.id || known.past.includes(found.id));
}

/**
 * The ids that a new history names as its past: the store's current one and the one we knew. Gateways that know either
 * accept it.
 */
export function pastOf({ known, found }: Loss): readonly string[] {
  const ids = [known, found].flatMap((epoch) => (epoch ? [epoch.id, ...epoch.past] : []));
  return [...new Set(ids)].slice(0, EPOCH_PAST_MAX);
}

/**
 * Names the incarnation of a part's history. If a part goes back to the same count a second time, the name differs from
 * the first; if only the base is known, it is the name that versions without `times` gave.
 */
export function lifeOf(epoch: KnownEpoch | undefined): string {
  const place = `${epoch?.id}@${epoch?.base}`;
  return epoch?.times !== undefined && epoch.times > saidByBase(epoch) ? `${place}*${epoch.times}` : place;
}
