/** Compares a vendor's figures with the ledger's, by UTC day and model. Pure. */
import { bareName } from "../../convert/answered-model.ts";
import { addFigures, type ByDay, type InvoiceFigures, NO_FIGURES } from "./invoice.ts";

export type Figure = keyof InvoiceFigures;

/** One figure of a day and model, on both sides. */
export interface Compared {
  readonly day: string;
  readonly model: string;
  readonly figure: Figure;
  readonly theirs: bigint;
  readonly ours: bigint;
  /** The difference as a share of the larger of the two: 0 if they are equal, 1 if one side has nothing. */
  readonly share: number;
  readonly differs: boolean;
}

export interface Comparison {
  readonly items: readonly Compared[];
  /** Days and models of which at least one figure differs. */
  readonly differing: readonly { readonly day: string; readonly model: string }[];
  /** Models in the vendor's file that the ledger has no entries for: other users of the same account. */
  readonly others: ReadonlyMap<string, InvoiceFigures>;
}

interface CompareOptions {
  /** The figures that the vendor's file has; no others are compared. */
  readonly tells: readonly Figure[];
  /** A figure differs if its share is above this. */
  readonly share: number;
  /** Our model names by the vendor's. */
  readonly names: ReadonlyMap<string, string>;
  /** Whether models that the ledger has no entries for count as differing. */
  readonly allModels: boolean;
}

/** Shares are computed in parts per billion, so that sums of any size are exact. */
const SHARE_PARTS = 1_000_000_000n;

export function compareFigures(theirs: ByDay, ours: ByDay, options: CompareOptions): Comparison {
  const named = renamed(theirs, (name) => options.names.get(name) ?? name);
  const labels = labelsOf(modelsOf(named), modelsOf(ours));
  const label = (name: string) => labels.get(name) ?? name;
  const [left, right] = [renamed(named, label), renamed(ours, label)];
  const known = modelsOf(right);
  const items: Compared[] = [];
  const others = new Map<string, InvoiceFigures>();
  for (const day of [...new Set([...left.keys(), ...right.keys()])].sort()) {
    const [a, b] = [left.get(day), right.get(day)];
    for (const model of [...new Set([...(a?.keys() ?? []), ...(b?.keys() ?? [])])].sort()) {
      const their = a?.get(model) ?? NO_FIGURES;
      if (!options.allModels && !known.has(model)) {
        others.set(model, addFigures(others.get(model) ?? NO_FIGURES, their));
        continue;
      }
      for (const figure of options.tells) {
        items.push(compared({ day, model, figure }, their, b?.get(model) ?? NO_FIGURES, options.share));
      }
    }
  }
  const places = items.filter(({ differs }) => differs).map(({ day, model }) => JSON.stringify({ day, model }));
  return { items, differing: [...new Set(places)].map((place) => JSON.parse(place)), others };
}

function compared(
  place: Pick<Compared, "day" | "model" | "figure">,
  their: InvoiceFigures,
  our: InvoiceFigures,
  share: number,
): Compared {
  const [theirs, ours] = [BigInt(their[place.figure]), BigInt(our[place.figure])];
  const difference = size(theirs - ours);
  const largest = size(theirs) > size(ours) ? size(theirs) : size(ours);
  // The difference between a credit and a charge is larger than either of them.
  const parts = largest === 0n ? 0n : (difference * SHARE_PARTS) / largest;
  const limit = BigInt(Math.round(share * Number(SHARE_PARTS)));
  return {
    ...{ ...place, theirs, ours },
    share: Math.min(1, Number(parts) / Number(SHARE_PARTS)),
    differs: difference * SHARE_PARTS > limit * largest,
  };
}

function size(amount: bigint): bigint {
  return amount < 0n ? -amount : amount;
}

function modelsOf(byDay: ByDay): Set<string> {
  return new Set([...byDay.values()].flatMap((models) => [...models.keys()]));
}

function renamed(byDay: ByDay, name: (model: string) => string): ByDay {
  const sums: ByDay = new Map();
  for (const [day, models] of byDay) {
    const under = new Map<string, InvoiceFigures>();
    for (const [model, figures] of models) {
      under.set(name(model), addFigures(under.get(name(model)) ?? NO_FIGURES, figures));
    }
    sums.set(day, under);
  }
  return sums;
}

/**
 * The names under which models are compared. Vendors bill dated versions, add their own name in front, or use a title.
 * If the two sides have different names for one model, these are compared together, under our names.
 */
function labelsOf(theirs: ReadonlySet<string>, ours: ReadonlySet<string>): Map<string, string> {
  const groups = new Map<string, { theirs: string[]; ours: string[] }>();
  const groupOf = (name: string) => {
    const bare = bareName(name.replaceAll(/[ ._]/g, "-"));
    const group = groups.get(bare) ?? { theirs: [], ours: [] };
    groups.set(bare, group);
    return group;
  };
  for (const name of theirs) groupOf(name).theirs.push(name);
  for (const name of ours) groupOf(name).ours.push(name);
  const labels = new Map<string, string>();
  for (const group of groups.values()) {
    if (group.ours.length === 0 || group.theirs.length === 0) continue;
    if (group.theirs.length === group.ours.length && group.theirs.every((name) => ours.has(name))) continue;
    const label = group.ours.sort().join(" + ");
    for (const name of [...group.theirs, ...group.ours]) labels.set(name, label);
  }
  return labels;
}
