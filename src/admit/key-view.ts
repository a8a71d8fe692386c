/** What a key may see, or why it is refused: for callers that need to know that without admitting a request. */
import type { KeyRefusalCause } from "../store/admission.ts";
import { type Store, StoreError } from "../store/contract.ts";
import { addressBarredBy, keyBarredBy } from "../store/decision.ts";
import type { KeyView } from "../store/records.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { WellFormedKey } from "../values/key.ts";
import type { SeenKeys } from "./seen-keys.ts";

interface KeyParts {
  readonly store: Pick<Store, "readKey">;
  readonly seenKeys: SeenKeys;
}

/**
 * Reads a key in one round trip to the store, or in none where it was refused a moment ago.
 * @param address of the client, as bits.
 * @returns a refusal: why the key is refused, or what `storeRefusal` makes of a store that does not answer.
 */
export async function readKeyView(
  key: WellFormedKey,
  address: string,
  { store, seenKeys }: KeyParts,
): Promise<KeyView | Refusal> {
  const known = seenKeys.bad(key.hash);
  if (known) return refusal(known);
  let view: KeyView | undefined;
  try {
    view = await store.readKey(key.tag, key.hash);
  } catch (error) {
    return storeRefusal(error);
  }
  const cause = view ? (keyBarredBy(view.key, view.storeTimeMs) ?? addressBarredBy(view.key, address)) : "unknown_key";
  if (view && cause === undefined) {
    seenKeys.noteGood(key.hash);
    return view;
  }
  return refuseKey(cause ?? "unknown_key", key, seenKeys);
}

/** The refusal of a key, which is remembered where a key stays refused: one that is suspended may be resumed at any time. */
export function refuseKey(cause: KeyRefusalCause, { hash }: Pick<WellFormedKey, "hash">, seenKeys: SeenKeys): Refusal {
  if (cause === "unknown_key" || cause === "revoked_key") seenKeys.noteBad(hash, cause);
  return refusal(cause);
}

/** The refusal for a store that gave no answer; any other error is thrown on. */
export function storeRefusal(error: unknown): Refusal {
  if (error instanceof StoreError) return refusal(error.kind === "older" ? "store_older" : "store_unavailable");
  throw error;
}
