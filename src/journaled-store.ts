/**
 * A store whose administrative writes are journaled between its answer and the operator's, so that a store that loses
 * what it has acknowledged gets it back (reliability 3.3, F3). `replayed-writes.ts` reads what is written here.
 *
 * A record holds hashes, never the text of a key or a code. When the journal cannot take it the write stands, for the
 * store has it, and the operator is answered as ever; that it is in one place only is told to the log.
 */
import type { AdminRecord, Journal } from "./settle/journal.ts";
import type { Store } from "./store/contract.ts";
import type { Account, Key, RedeemAnswer } from "./store/records.ts";

/** A record has 32 KiB, a code about 100 bytes. */
const CODES_PER_RECORD = 200;

/**
 * Wraps a store; every operation but the administrative writes is the store's own. Answers that say "so it was before"
 * are journaled too: the first try may have ended between store and journal.
 * @param onUnrecorded told of a write that the journal could not take.
 */
export function journaledStore(
  store: Store,
  journal: Pick<Journal, "adminWrite">,
  onUnrecorded: (record: AdminRecord, error: unknown) => void,
): Store {
  const writes = journaledWrites(store, async (kind, id, payload) => {
    const record: AdminRecord = { kind, id, payload };
    await journal.adminWrite(record).catch((error: unknown) => onUnrecorded(record, error));
  });
  const replaced = new Map<PropertyKey, unknown>(Object.entries(writes));
  return new Proxy(store, {
    get(target, name) {
      const found = replaced.get(name);
      if (found !== undefined) return found;
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function") return own;
      const bound = own.bind(target);
      replaced.set(name, bound);
      return bound;
    },
  });
}

type Note = (kind: AdminRecord["kind"], id: string, payload: AdminRecord["payload"]) => Promise<void>;
type Writes = Pick<
  Store,
  | "createAccount"
  | "setPlan"
  | "createKey"
  | "setKeyGroup"
  | "revokeKey"
  | "credit"
  | "grant"
  | "createCodes"
  | "voidCode"
  | "redeem"
>;

function journaledWrites(store: Store, note: Note): Writes {
  return { ...accountWrites(store, note), ...cardWrites(store, note) };
}

function accountWrites(
  store: Store,
  note: Note,
): Pick<Writes, "createAccount" | "setPlan" | "createKey" | "setKeyGroup" | "revokeKey" | "credit"> {
  const noteAccount = (kind: "account_create" | "account_plan", { tag, name, plan, planRevision }: Account) =>
    note(kind, `${tag}:${planRevision}`, { tag, name, plan, revision: planRevision });
  const noteKey = async (kind: "key_group" | "key_revoke", key: Key | undefined): Promise<Key | undefined> => {
    if (key === undefined) return undefined;
    const { tag, id, group, status, revision } = key;
    await note(kind, `${id}:${revision}`, { tag, id, group, status, revision });
    return key;
  };
  return {
    async createAccount(account) {
      const answer = await store.createAccount(account);
      const made = answer === "exists" ? await store.findAccount(account.name) : answer;
      if (made) await noteAccount("account_create", made);
      return answer;
    },
    async setPlan(...ask) {
      const account = await store.setPlan(...ask);
      if (account) await noteAccount("account_plan", account);
      return account;
    },
    async createKey(tag, asked) {
      const key = await store.createKey(tag, asked);
      // The id of another key with the same hash: nothing was made.
      if (key?.id === asked.id) await note("key_create", key.id, { tag, ...asked });
      return key;
    },
    setKeyGroup: async (...ask) => noteKey("key_group", await store.setKeyGroup(...ask)),
    revokeKey: async (...ask) => noteKey("key_revoke", await store.revokeKey(...ask)),
    async credit(tag, payment) {
      const answer = await store.credit(tag, payment);
      const counted = answer.outcome === "credited" || answer.outcome === "duplicate";
      if (counted) await note("credit", payment.id, { tag, ...payment });
      return answer;
    },
  };
}

function cardWrites(store: Store, note: Note): Pick<Writes, "grant" | "createCodes" | "voidCode" | "redeem"> {
  return {
    async grant(tag, asked) {
      const card = await store.grant(tag, asked);
      if (card) await note("grant", asked.id, { ...asked, tag, fromMs: card.fromMs });
      return card;
    },
    async createCodes(facts, codes) {
      await store.createCodes(facts, codes);
      for (let from = 0; from < codes.length; from += CODES_PER_RECORD) {
        const batch = codes.slice(from, from + CODES_PER_RECORD);
        await note("code", batch[0]?.id ?? "", { facts, codes: batch });
      }
    },
    async voidCode(id) {
      const code = await store.voidCode(id);
      if (code?.state === "void") await note("code", `${id}:void`, { void: id });
      return code;
    },
    async redeem(ask) {
      const answer = await store.redeem(ask);
      if (answer.outcome === "redeemed" || answer.outcome === "again") await noteRedemption(ask, answer);
      return answer;
    },
  };

  function noteRedemption(
    { tag, hash }: Parameters<Store["redeem"]>[0],
    { code, entitlement }: Extract<RedeemAnswer, { code: unknown }>,
  ): Promise<void> {
    const { id, card, plan, group, lastsMs, starts, quota } = code;
    const facts = { card, plan, group, lastsMs, starts, quota };
    return note("grant", id, { tag, hash, id, facts, fromMs: entitlement.fromMs });
  }
}
