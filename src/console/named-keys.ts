/** Looks up keys, and the accounts that they belong to, by the id of a key. */
import type { Store } from "../store/contract.ts";
import type { Account, ListedKey } from "../store/records.ts";
import { type AccountTag, tagOfId } from "../values/key.ts";
import { noSuchKey } from "./refusal.ts";

/** The account that a key's id names. @throws AdminRefusal 404 */
export async function ownerOf(store: Store, keyId: string): Promise<Account> {
  const tag = tagOfId(keyId);
  const account = tag === undefined ? undefined : await store.getAccount(tag);
  if (account === undefined) throw noSuchKey(keyId);
  return account;
}

/** The key with this id. @throws AdminRefusal 404 */
export async function keyNamed(store: Store, tag: AccountTag, id: string): Promise<ListedKey> {
  const key = await keyOf(store, tag, id);
  if (key === undefined) throw noSuchKey(id);
  return key;
}

/** The same; undefined if the account has no such key. */
export async function keyOf(store: Store, tag: AccountTag, id: string): Promise<ListedKey | undefined> {
  return (await store.listKeys(tag)).find((key) => key.id === id);
}
