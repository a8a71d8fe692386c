/**
 * A store that is not touched while it is not the one that it was (docs/failure-model.md row B12): while the gate is shut
 * every admission, settlement and write is refused as `older`, and no answer that says "there is no such account" or "no
 * such key" is believed before the store's history has been looked at again. A session that was ended may be back in such a
 * store, so nobody comes in by one. What else an operator reads is read as it is.
 */

import type { AccountTag } from "../../values/key.ts";
import type { Store } from "../contract.ts";

export interface Gate {
  /** Undefined: go on. Else resolves when one may, and rejects with StoreError when one may not. */
  pass(): Promise<void> | undefined;
  /** Looks at the store's history again. Rejects with StoreError when it is not what it was, or is unknown. */
  recheck(tag: AccountTag): Promise<void>;
}

/** Everything that changes what the store has, beside the calls of requests. */
const WRITES = [
  "createAccount",
  "setPlan",
  "setAccountLimits",
  "setNotifyBelow",
  "changeAccount",
  "renameAccount",
  "closeAccount",
  "createKey",
  "changeKey",
  "rotateKey",
  "revokeKey",
  "noteKeyUses",
  "credit",
  "grant",
  "createCodes",
  "voidCode",
  "voidCodes",
  "redeem",
  "finishClaims",
  "archiveLedger",
  "addNotice",
  "takeNotice",
  "leaseNotices",
  "keepSignIn",
  "takeSignIn",
  "dropSignIn",
  "dropSignIns",
] as const satisfies readonly (keyof Store)[];

/** Reads that let somebody in. */
const ENTRANCES = ["findSignIn"] as const satisfies readonly (keyof Store)[];

/** The writes of a store, and what lets somebody in, each of which waits for the gate. */
export function gatedWrites(store: Store, gate: Gate): Partial<Store> {
  const writes = [...WRITES, ...ENTRANCES].map((name) => {
    const write = store[name].bind(store) as (...ask: unknown[]) => Promise<unknown>;
    const gated = async (...ask: unknown[]) => {
      await gate.pass();
      return write(...ask);
    };
    return [name, gated];
  });
  return Object.fromEntries(writes);
}
