/**
 * Keys: create (the only time that a key's text is shown), list, move to another group, revoke.
 */

import { type Store, StoreError } from "../store/contract.ts";
import type { Account, Key } from "../store/records.ts";
import { type AccountTag, newKey, tagOfId } from "../values/key.ts";
import { accountNamed } from "./accounts.ts";
import { showKey } from "./present.ts";
import { noSuchAccount, noSuchKey, Refusal } from "./refusal.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./route.ts";
import { AccountPath, KeyPath, NewGroup, NewKey } from "./schema.ts";
import { assertConfigured } from "./suggest.ts";

export function keyRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store } = parts;
  return [
    route({
      method: "POST",
      path: "/accounts/:name/keys",
      params: AccountPath,
      body: NewKey,
      write: {
        what: "key.create",
        target: ({ params }) => params.name,
        facts: ({ body }) => ({ group: body.group }),
        whenUnknown:
          "A key may exist that nobody has seen: list the account's keys, revoke the newest, create another.",
      },
      async handle({ params, body }) {
        assertConfigured("group", body.group, parts.catalog().groups.keys());
        const account = await accountNamed(store, params.name);
        const fresh = newKey(account.tag, parts.random);
        const key = await addKey(store, account.tag, { id: fresh.id, hash: fresh.hash, group: body.group });
        if (key === undefined) throw noSuchAccount(params.name);
        // The text goes out here and nowhere else, so a request that is sent again makes a second key.
        return { status: 201, body: { ...showKey(key, account.name), key: fresh.text }, audit: { key_id: key.id } };
      },
    }),
    route({
      method: "GET",
      path: "/accounts/:name/keys",
      params: AccountPath,
      async handle({ params }) {
        const account = await accountNamed(store, params.name);
        const keys = await store.listKeys(account.tag);
        return { status: 200, body: { items: keys.map((key) => showKey(key, account.name)) } };
      },
    }),
    route({
      method: "PUT",
      path: "/keys/:id/group",
      params: KeyPath,
      body: NewGroup,
      write: {
        what: "key.set_group",
        target: ({ params }) => params.id,
        facts: ({ body }) => ({ group: body.group }),
        whenUnknown: "Repeat the request: setting the same group again changes nothing.",
      },
      async handle({ params, body }) {
        assertConfigured("group", body.group, parts.catalog().groups.keys());
        const account = await ownerOf(store, params.id);
        const key = await store.setKeyGroup(account.tag, params.id, body.group);
        if (key === undefined) throw noSuchKey(params.id);
        if (key.status === "revoked") throw revoked(key);
        return { status: 200, body: showKey(key, account.name) };
      },
    }),
    route({
      method: "POST",
      path: "/keys/:id/revoke",
      params: KeyPath,
      write: {
        what: "key.revoke",
        target: ({ params }) => params.id,
        whenUnknown: "Repeat the request: revoking a revoked key changes nothing.",
      },
      async handle({ params }) {
        const account = await ownerOf(store, params.id);
        const key = await store.revokeKey(account.tag, params.id);
        if (key === undefined) throw noSuchKey(params.id);
        return { status: 200, body: showKey(key, account.name) };
      },
    }),
  ];
}

/** Adds a key, and once more when the outcome is unknown: the store takes the same key twice without harm. */
async function addKey(store: Store, tag: AccountTag, key: Parameters<Store["createKey"]>[1]): Promise<Key | undefined> {
  try {
    return await store.createKey(tag, key);
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== "unavailable") throw error;
    return store.createKey(tag, key);
  }
}

/** The account that a key's id names. @throws Refusal 404 */
async function ownerOf(store: Store, keyId: string): Promise<Account> {
  const tag = tagOfId(keyId);
  const account = tag === undefined ? undefined : await store.getAccount(tag);
  if (account === undefined) throw noSuchKey(keyId);
  return account;
}

function revoked(key: Key): Refusal {
  return new Refusal(
    409,
    "key_revoked",
    `The key \`${key.id}\` is revoked, which is final; it stays in the group \`${key.group}\`.`,
    "Create another key in the group you want.",
  );
}
