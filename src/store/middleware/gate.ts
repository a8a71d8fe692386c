/**
 * Keeps the gateway away from a store whose history has changed (docs/failure-model.md row B12). While the gate is
 * shut, every admission, settlement and write is refused as `older`. An answer "there is no such account" or "no such
 * key" is not trusted before the store's history has been checked again. Such a store may contain sessions that were
 * ended, so no session can be used. Other reads of operators pass.
 */

import type { AccountTag } from "../../values/key.ts";
import type { Store } from "../contract.ts";

export interface Gate {
  /**
   * Undefined: go on. Otherwise a promise that resolves when the call may go on, and rejects with StoreError when it
   * may not.
   */
  pass(): Promise<void> | undefined;
  /** Checks the store's history again. Rejects with StoreError when it has changed or is unknown. */
  recheck(tag: AccountTag): Promise<void>;
}

/** Everything that changes the store's data, except the calls of requests. */
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

/** Reads that grant access. */
const ENTRANCES = ["findSignIn"] as const satisfies readonly (keyof Store)[];

/** The store's writes and the reads that grant access; each waits for the gate. */
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
