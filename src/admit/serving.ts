/** What is the same for every request to one model of a catalog; computed with the first request. */
import { type Catalog, type Group, groupServes, type Model } from "../values/catalog.ts";

/** Groups in which a request costs the same: equal multipliers, and rules that add the same number of bytes. */
export type CostClass = Pick<Group, "multiplier" | "addedInputBytes">;

/** The groups that serve a model. */
interface Serving {
  readonly groups: readonly Group[];
  readonly classes: readonly CostClass[];
  /** For each group, the index of its class. */
  readonly classOf: readonly number[];
  /** The most that the rules of any of the groups add. */
  readonly addedInputBytesMost: number;
}

const SERVING = new WeakMap<Catalog, Map<Model, Serving>>();

/** The groups that serve a model of the catalog. 0.03 us, where searching the model names of two groups took 0.15. */
export function servingOf(catalog: Catalog, model: Model): Serving {
  let known = SERVING.get(catalog);
  if (!known) {
    known = new Map();
    SERVING.set(catalog, known);
  }
  const found = known.get(model);
  if (found) return found;
  const serving = findServing(catalog, model);
  known.set(model, serving);
  return serving;
}

function findServing(catalog: Catalog, model: Model): Serving {
  const groups = [...catalog.groups.values()].filter((group) => groupServes(group, model.name));
  const classes: CostClass[] = [];
  const classOf = groups.map(({ multiplier, addedInputBytes }) => {
    const isSame = (one: CostClass) => one.multiplier === multiplier && one.addedInputBytes === addedInputBytes;
    const known = classes.findIndex(isSame);
    return known === -1 ? classes.push({ multiplier, addedInputBytes }) - 1 : known;
  });
  const addedInputBytesMost = Math.max(0, ...groups.map((group) => group.addedInputBytes));
  return { groups, classes, classOf, addedInputBytesMost };
}
