/** The keys of an account by id, for pages that show key names. */
import type { ListedKeyAnswer } from "../../answers/answers.ts";
import { ask } from "../parts/api.ts";
import { useEffect, useState } from "../parts/view.ts";

interface KeysAnswer {
  readonly items: readonly ListedKeyAnswer[];
  readonly next: string | null;
}

export type KeyNames = ReadonlyMap<string, ListedKeyAnswer>;

/** By id. Empty until loaded; a page is usable without them. */
export function useKeyNames(account: string): KeyNames {
  const [keys, setKeys] = useState<KeyNames>(NONE);
  useEffect(() => {
    const gone = new AbortController();
    void loadAll(account, gone.signal).then(
      (all) => gone.signal.aborted || setKeys(all),
      () => {},
    );
    return () => gone.abort();
  }, [account]);
  return keys;
}

/** If an account has more keys, the others are shown by id. */
const KEYS_MAX = 1_000;
const NONE: KeyNames = new Map();

async function loadAll(account: string, signal: AbortSignal): Promise<KeyNames> {
  const keys = new Map<string, ListedKeyAnswer>();
  let cursor: string | null = null;
  do {
    const search: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: KeysAnswer = await ask(`/accounts/${encodeURIComponent(account)}/keys?limit=200${search}`, { signal });
    for (const key of page.items) keys.set(key.id, key);
    cursor = page.next;
  } while (cursor !== null && keys.size < KEYS_MAX);
  return keys;
}
