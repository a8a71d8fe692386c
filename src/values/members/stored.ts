/**
 * What clients may refer to: stored responses at an upstream that is `stateful`, and containers at any upstream.
 * Clients get their ids wrapped, so that an id names its upstream and opens only for its own account
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */

/** The contents of a wrapped id. */
export interface StoredName {
  /** The upstream that keeps it, by its name in the configuration. */
  readonly upstream: string;
  /** The requested model, as the catalog names it. */
  readonly model: string;
  /** The upstream's own id. */
  readonly id: string;
}

/** The wrapped ids of one request. */
export interface StoredNames {
  /** Every text with the form of a wrapped id, and its contents; undefined if it does not open for this account. */
  readonly names: ReadonlyMap<string, StoredName | undefined>;
  /** The first id that refers to content outside the request; undefined if there is none. */
  readonly needed: StoredName | undefined;
  /** The upstream that ran the last container named by an item; undefined if there is none. */
  readonly ranAt: string | undefined;
}
