/**
 * The store as one account sees it. The admin's routes work for owners over this store, and whatever a route, an id or a
 * name leads to, no call reaches another account: that does not rest on what each route remembers to compare.
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

/** Who has signed in, and to what. */
export interface SignedIn {
  readonly session: Session;
  /** As it was when the request began. */
  readonly account: Account;
  /** Under what address the page was opened. */
  readonly site: PageSite;
}

/** Runs work for an owner: within it `ownStore` answers of this owner's account only. */
export class OwnScope {
  readonly #owners = new AsyncLocalStorage<SignedIn>();

  run<T>(owner: SignedIn, work: () => T): T {
    return this.#owners.run(owner, work);
  }

  /** Whose work this is. Throws outside of `run`: a defect. */
  get owner(): SignedIn {
    const owner = this.#owners.getStore();
    assert.ok(owner !== undefined, "the console was asked for nobody");
    return owner;
  }

  get tag(): AccountTag {
    return this.owner.account.tag;
  }
}

/** @returns a store with the calls that owners need; every other one throws. */
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
      // What another account's id leads to is not there.
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
