/** What a key may see, or why it is refused: for callers that need to know that without admitting a request. */
import { type Store, StoreError } from "../store/contract.ts";
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
 * @returns a refusal: `unknown_key`, `revoked_key`, or what `storeRefusal` makes of a store that does not answer.
 */
export async function readKeyView(key: WellFormedKey, { store, seenKeys }: KeyParts): Promise<KeyView | Refusal> {
  const known = seenKeys.bad(key.hash);
  if (known) return refusal(known);
  let view: KeyView | undefined;
  try {
    view = await store.readKey(key.tag, key.hash);
  } catch (error) {
    return storeRefusal(error);
  }
  if (view?.key.status === "normal") {
    seenKeys.noteGood(key.hash);
    return view;
  }
  const cause = view ? "revoked_key" : "unknown_key";
  seenKeys.noteBad(key.hash, cause);
  return refusal(cause);
}

/** The refusal for a store that gave no answer; any other error is thrown on. */
export function storeRefusal(error: unknown): Refusal {
  if (error instanceof StoreError) return refusal(error.kind === "older" ? "store_older" : "store_unavailable");
  throw error;
}
