/**
 * An overlay replaces some operations of a store; the others, and those whose replacement is undefined, stay the store's own.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { overlay } from "../../../src/store/overlay.ts";

test("an overlay uses a replacement if there is one, and else the store's own operation", async () => {
  class Own {
    readonly name = "own";
    async getAccount(): Promise<string> {
      return this.name;
    }
    async readKey(): Promise<string> {
      return this.name;
    }
  }
  const own = new Own() as unknown as Store;
  const replaced = { readKey: async () => "replaced", getAccount: undefined } as unknown as Partial<Store>;
  const store = overlay(own, replaced) as unknown as Own;
  assert.equal(await store.readKey(), "replaced");
  assert.equal(await store.getAccount(), "own");
  assert.equal(store.getAccount, store.getAccount, "bound once");
});
