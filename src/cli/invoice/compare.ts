/** Holds a vendor's figures against the ledger's, by UTC day and model. Pure. */
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
  /** Of the larger of the two: 0 when they are equal, 1 when one side has nothing. */
  readonly share: number;
  readonly differs: boolean;
}

export interface Comparison {
  readonly items: readonly Compared[];
  /** Days and models of which at least one figure differs. */
  readonly differing: readonly { readonly day: string; readonly model: string }[];
  /** Models of theirs that the ledger has nothing of: other users of the same account. */
  readonly others: ReadonlyMap<string, InvoiceFigures>;
}

interface CompareOptions {
  /** What their file covers; nothing else is compared. */
  readonly tells: readonly Figure[];
  /** Above it a figure differs. */
  readonly share: number;
  /** Our names by theirs. */
  readonly names: ReadonlyMap<string, string>;
  /** Whether models that the ledger has nothing of differ, too. */
  readonly allModels: boolean;
}

/** Shares are worked out in parts per billion, so that sums of any size are exact. */
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
  // A credit against a charge differs by more than either of them.
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
 * The name under which a model is compared. Vendors bill dated versions, with their own name in front, or as a title; where
 * the names that both sides have of one model are not the same ones, they are compared together, under our names.
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
