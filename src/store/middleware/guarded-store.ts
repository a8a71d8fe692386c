/**
 * A store that is not touched while it is not the one that it was (docs/failure-model.md row B12): while the gate is
 * shut every admission, settlement and write is refused as `older`, and no answer that says "there is no such account"
 * or "no such key" is believed before the store's history has been looked at again. What an operator reads is read as
 * it is.
 */

import type { AccountTag, KeyHash } from "../../values/key.ts";
import type { Store } from "../contract.ts";
import { overlay } from "../overlay.ts";

export interface Gate {
  /** Undefined: go on. Else resolves when one may, and rejects with StoreError when one may not. */
  pass(): Promise<void> | undefined;
  /** Looks at the store's history again. Rejects with StoreError when it is not what it was, or cannot be told. */
  recheck(tag: AccountTag): Promise<void>;
}

const WRITES = [
  "createAccount",
  "setPlan",
  "createKey",
  "setKeyGroup",
  "revokeKey",
  "credit",
  "grant",
  "createCodes",
  "voidCode",
  "redeem",
  "finishClaims",
  "archiveLedger",
] as const satisfies readonly (keyof Store)[];

/** Wraps a store; what is no write is the store's own. */
export function guardedStore(store: Store, gate: Gate): Store {
  const writes = WRITES.map((name) => {
    const write = store[name].bind(store) as (...ask: unknown[]) => Promise<unknown>;
    const guarded = async (...ask: unknown[]) => {
      await gate.pass();
      return write(...ask);
    };
    return [name, guarded];
  });
  return overlay(store, { ...Object.fromEntries(writes), ...requestPath(store, gate) });
}

function requestPath(store: Store, gate: Gate): Pick<Store, "admit" | "settle" | "readKey"> {
  return {
    async admit(ask) {
      const shut = gate.pass();
      if (shut) await shut;
      const answer = await store.admit(ask);
      // A revoked key takes the same time as an unknown one, so that nothing tells them apart.
      const isBad = answer.outcome === "refused" && (answer.cause === "unknown_key" || answer.cause === "revoked_key");
      if (isBad) await gate.recheck(ask.tag);
      return answer;
    },
    async settle(ask) {
      const shut = gate.pass();
      if (shut) await shut;
      const answer = await store.settle(ask);
      if (answer.outcome === "unknown_account") await gate.recheck(ask.tag);
      return answer;
    },
    async readKey(tag: AccountTag, hash: KeyHash) {
      const shut = gate.pass();
      if (shut) await shut;
      const view = await store.readKey(tag, hash);
      if (!view || view.key.status === "revoked") await gate.recheck(tag);
      return view;
    },
  };
}
