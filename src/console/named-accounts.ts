/** Looks up accounts by name: for operators, for the OpenID providers of owners, and for walks through all ledgers. */
import type { Store } from "../store/contract.ts";
import type { Account, AccountName, Page } from "../store/records.ts";
import { newAccountTag } from "../values/key.ts";
import { noSuchAccount } from "./refusal.ts";
import type { ConsoleParts } from "./routes/contract.ts";

/** Tags drawn for one new account at most; a second draw is needed once in 10^17 accounts. */
const TAG_DRAWS_MAX = 3;

/** The account with this name. @throws AdminRefusal 404 */
export async function accountNamed(store: Store, name: string): Promise<Account> {
  const account = await store.findAccount(name);
  if (account === undefined) throw noSuchAccount(name);
  return account;
}

/** The same for callers that read only the ledger: the account's other data is not read. @throws AdminRefusal 404 */
export async function nameOfAccount(store: Store, name: string): Promise<AccountName> {
  const account = await store.findAccountName(name);
  if (account === undefined) throw noSuchAccount(name);
  return account;
}

/** The next account after this one, or the first; undefined after the last. */
export async function nextAccountName(store: Store, after: string): Promise<AccountName | undefined> {
  let cursor: string | undefined = after;
  do {
    const page: Page<AccountName> = await store.listAccountNames(cursor === "" ? undefined : cursor, 1);
    if (page.items[0]) return page.items[0];
    cursor = page.next;
  } while (cursor !== undefined);
  return undefined;
}

/** The account with this name; created if it does not exist. @throws StoreError */
export async function createOrFind(
  parts: Pick<ConsoleParts, "store" | "random">,
  name: string,
  plan: string,
): Promise<{ account: Account; created: boolean }> {
  for (let draw = 0; draw < TAG_DRAWS_MAX; draw++) {
    const created = await parts.store.createAccount({ tag: newAccountTag(parts.random), name, plan });
    if (created !== "exists") return { account: created, created: true };
    const account = await parts.store.findAccount(name);
    if (account !== undefined) return { account, created: false };
    // The name is free, so the tag was taken: draw another one.
  }
  throw new Error("no free account tag was drawn; the random source repeats itself");
}
