/** Reads what a key may see, or why it is refused, for callers that do not admit a request. */
import type { Store } from "../store/contract.ts";
import { addressRefusal, keyRefusal } from "../store/decision.ts";
import type { KeyView } from "../store/records.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { WellFormedKey } from "../values/key.ts";
import { refuseKey, storeRefusal } from "./refused.ts";
import type { SeenKeys } from "./seen-keys.ts";

interface KeyParts {
  readonly store: Pick<Store, "readKey">;
  readonly seenKeys: SeenKeys;
}

/**
 * Reads a key in one round trip to the store, or in none if it was refused a moment ago.
 * @param address of the client, as bits.
 * @returns a refusal: why the key is refused, or the result of `storeRefusal` if the store does not answer.
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
  const cause = view ? (keyRefusal(view.key, view.storeTimeMs) ?? addressRefusal(view.key, address)) : "unknown_key";
  if (view && cause === undefined) {
    seenKeys.noteGood(key.hash);
    return view;
  }
  return refuseKey(cause ?? "unknown_key", key, seenKeys);
}
