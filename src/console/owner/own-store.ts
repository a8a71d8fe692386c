/**
 * The store restricted to one account. The admin's routes use it to serve owners: whatever id or name a route is given,
 * no call reaches another account, even if the route forgets to check.
 */

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import type { Store } from "../../store/contract.ts";
import type { Account } from "../../store/records.ts";
import type { AccountTag } from "../../values/key.ts";
import type { Session } from "../sign-in/sessions.ts";
import type { PageSite } from "../sign-in/site.ts";

/** Calls whose first argument is the account's tag. */
const BY_TAG = [
  "getAccount",
  "listCards",
  "listKeys",
  "createKey",
  "changeKey",
  "revokeKey",
  "rotateKey",
  "readKey",
  "readAccountBudgets",
  "readLimits",
  "readLedger",
  "pageDays",
  "listSignIns",
  "findSignIn",
  "keepSignIn",
  "dropSignIn",
] as const satisfies readonly (keyof Store)[];

/** Who has signed in, and to which account. */
export interface SignedIn {
  readonly session: Session;
  /** The account at the beginning of the request. */
  readonly account: Account;
  /** The address under which the page was opened. */
  readonly site: PageSite;
}

/** Runs work for an owner: within it, `ownStore` accesses only this owner's account. */
export class OwnScope {
  readonly #owners = new AsyncLocalStorage<SignedIn>();

  run<T>(owner: SignedIn, work: () => T): T {
    return this.#owners.run(owner, work);
  }

  /** The owner whose work is running. Throws outside of `run`: a defect. */
  get owner(): SignedIn {
    const owner = this.#owners.getStore();
    assert.ok(owner !== undefined, "the store of an owner was used outside of a request");
    return owner;
  }

  get tag(): AccountTag {
    return this.owner.account.tag;
  }
}

/** @returns a store with the calls that owners need; every other call throws */
export function ownStore(store: Store, scope: OwnScope): Store {
  const calls: Partial<Record<keyof Store, unknown>> = {
    findAccount: async (name: string) => onlyOwn(await store.findAccount(name), scope),
    findAccountName: async (name: string) => onlyOwn(await store.findAccountName(name), scope),
    redeem: (ask: Parameters<Store["redeem"]>[0]) => {
      assertOwn(ask.tag, scope);
      return store.redeem(ask);
    },
  };
  for (const name of BY_TAG) {
    const call = store[name].bind(store) as (tag: AccountTag, ...rest: unknown[]) => unknown;
    calls[name] = (tag: AccountTag, ...rest: unknown[]) => {
      if (tag === scope.tag) return call(tag, ...rest);
      // Ids of other accounts lead to nothing.
      return name === "getAccount" || name === "readKey" ? Promise.resolve(undefined) : assertOwn(tag, scope);
    };
  }
  return new Proxy(store, {
    get(_target, name) {
      const call = calls[name as keyof Store];
      assert.ok(call !== undefined, `the console of owners has no use for ${String(name)}`);
      return call;
    },
  });
}

function onlyOwn<A extends { readonly tag: AccountTag }>(found: A | undefined, scope: OwnScope): A | undefined {
  return found?.tag === scope.tag ? found : undefined;
}

function assertOwn(tag: AccountTag, scope: OwnScope): void {
  assert.equal(tag, scope.tag, "a route of the console reached for another account");
}
