/**
 * What clients may refer to at an upstream that keeps responses (`stateful`), and containers at any: their ids are given out
 * wrapped, so that one names its upstream and opens for its own account only (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */

/** What a wrapped id holds. */
export interface StoredName {
  /** The upstream that keeps it, by its name in the configuration. */
  readonly upstream: string;
  /** The model that was asked for, as the catalog names it. */
  readonly model: string;
  /** The upstream's own id. */
  readonly id: string;
}

/** The wrapped ids of one request. */
export interface StoredNames {
  /** Every text that has the form of one, with what it holds; undefined where it does not open for this account. */
  readonly names: ReadonlyMap<string, StoredName | undefined>;
  /** The first that stands for content which is not in the request itself; undefined: none does. */
  readonly needed: StoredName | undefined;
  /** The upstream that ran the last container which an item names; undefined: none does. */
  readonly ranAt: string | undefined;
}
