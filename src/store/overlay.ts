/** A store some of whose operations are other ones. */
import type { Store } from "./contract.ts";

/** @returns a store whose operations are those of `operations`, and `store`'s own where that has none. */
export function overlay(store: Store, operations: Partial<Store>): Store {
  const replaced = new Map<PropertyKey, unknown>(Object.entries(operations));
  return new Proxy(store, {
    get(target, name) {
      const found = replaced.get(name);
      if (found !== undefined) return found;
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function") return own;
      const bound = own.bind(target);
      replaced.set(name, bound);
      return bound;
    },
  });
}
