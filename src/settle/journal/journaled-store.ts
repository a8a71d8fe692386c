/**
 * A store that journals its administrative writes: after the store has answered, before the operator gets the answer.
 * If the store loses an acknowledged write, the journal restores it (docs/failure-model.md invariant 33).
 * `replayed-writes.ts` reads these records.
 *
 * A record has hashes, never the text of a key or a code. If the journal cannot take a write, the store still has it
 * and the operator gets the usual answer; a log line reports that the write is in one place only.
 */

import { type Store, StoreError, UnconfirmedError } from "../../store/contract.ts";
import { changedMembers } from "../../store/key-revisions.ts";
import { overlay } from "../../store/overlay.ts";
import type { Account, Code, Key, KeyChange, Redemption } from "../../store/records.ts";
import type { SignInOwner, SignInRecord } from "../../store/sign-ins.ts";
import type { AccountTag } from "../../values/key.ts";
import type { AdminRecord, Journal } from "../journal.ts";

/** A record has at most 32 KiB; a code takes about 100 bytes. */
const CODES_PER_RECORD = 200;

/**
 * Wraps a store; every operation except the administrative writes is the store's own. Writes that the store already had
 * are journaled too: an earlier attempt may have ended between store and journal.
 * @param onUnrecorded called for a write that the journal could not take.
 */
export function journaledStore(
  store: Store,
  journal: Pick<Journal, "adminWrite">,
  onUnrecorded: (record: AdminRecord, error: unknown) => void,
): Store {
  const writes = journaledWrites(store, async (kind, id, payload, isCopy = false) => {
    const record: AdminRecord = { kind, id, payload };
    await journal.adminWrite(record).catch((error: unknown) => {
      if (!isCopy) onUnrecorded(record, error);
    });
  });
  return overlay(store, writes);
}

/** `isCopy`: another record has the same content, or its failure is reported instead. */
type Note = (kind: AdminRecord["kind"], id: string, payload: AdminRecord["payload"], isCopy?: boolean) => Promise<void>;
type Writes = Pick<
  Store,
  | "createAccount"
  | "setPlan"
  | "setAccountLimits"
  | "setNotifyBelow"
  | "changeAccount"
  | "renameAccount"
  | "closeAccount"
  | "createKey"
  | "changeKey"
  | "rotateKey"
  | "revokeKey"
  | "credit"
  | "grant"
  | "createCodes"
  | "voidCode"
  | "voidCodes"
  | "redeem"
  | "finishClaims"
  | "takeSignIn"
  | "dropSignIn"
  | "dropSignIns"
>;

function journaledWrites(store: Store, note: Note): Writes {
  return { ...accountWrites(store, note), ...cardWrites(store, note), ...signInWrites(store, note) };
}

function noteAccount(
  note: Note,
  { tag, name, plan, planRevision }: Account,
  kind: "account_create" | "account_plan",
  isCopy = false,
): Promise<void> {
  return note(kind, `${tag}:${planRevision}`, { tag, name, plan, revision: planRevision }, isCopy);
}

/**
 * Journals a write to an account together with the account itself. The gateway that created the account may have died
 * before journaling it, and without the account the write could not be replayed.
 */
async function noteGiven(
  store: Store,
  note: Note,
  tag: AccountTag,
  ...record: readonly [AdminRecord["kind"], string, AdminRecord["payload"]]
): Promise<void> {
  // The store has taken the write, even if it does not answer now.
  const account = await store.getAccount(tag).catch(() => undefined);
  await Promise.all([account && noteAccount(note, account, "account_create", true), note(...record)]);
}

function accountWrites(
  store: Store,
  note: Note,
): Omit<Writes, keyof ReturnType<typeof cardWrites> | keyof ReturnType<typeof signInWrites>> {
  // A record has all members, for versions that have one revision for all of them, and names those that changed.
  const noteStatus = ({ tag, status, labels, revision }: Account) =>
    note("account_change", `${tag}:${revision}`, { tag, status, labels, revision, changed: ["status"] });
  const noteLabels = ({ tag, status, labels, labelsRevision: revision }: Account) =>
    note("account_change", `${tag}:${revision}:labels`, { tag, status, labels, revision, changed: ["labels"] });
  const noteKey = ({ createdAtMs: _, ...key }: Key, kind: "key_change" | "key_revoke", change: KeyChange = {}) =>
    note(kind, `${key.id}:${key.revision}`, { ...key, changed: changedMembers(change) });
  return {
    createAccount: (account) =>
      noted(store.createAccount(account), async (answer) => {
        const made = answer === "exists" ? await store.findAccount(account.name) : answer;
        // Neither created nor found: the store has lost it in between, and the caller must retry.
        if (!made) throw new StoreError("unavailable", "the account that was there a moment ago is gone");
        await noteAccount(note, made, "account_create");
      }),
    setPlan: (...ask) =>
      noted(store.setPlan(...ask), async (account) => account && noteAccount(note, account, "account_plan")),
    setAccountLimits: (tag, ...ask) =>
      noted(store.setAccountLimits(tag, ...ask), async (account) => {
        if (!account) return;
        const { limits, limitsRevision: revision } = account;
        await note("account_limits", `${tag}:${revision}`, { tag, limits, revision });
      }),
    setNotifyBelow: (...ask) =>
      noted(store.setNotifyBelow(...ask), async (account) => {
        if (!account) return;
        const { tag, notifyBelow: below, notifyRevision: revision } = account;
        await note("account_notify", `${tag}:${revision}`, { tag, below, revision });
      }),
    changeAccount: (tag, change, revision) =>
      noted(store.changeAccount(tag, change, revision), async (account) => {
        if (typeof account !== "object") return;
        if (change.status !== undefined || account.status === "closed") await noteStatus(account);
        if (change.labels !== undefined) await noteLabels(account);
      }),
    renameAccount: (tag, name, revision) =>
      noted(store.renameAccount(tag, name, revision), async (account) => {
        if (typeof account !== "object" || account.name !== name) return;
        const { plan, planRevision, nameRevision } = account;
        await note("account_rename", `${tag}:${nameRevision}`, {
          ...{ tag, name, revision: nameRevision },
          ...{ plan, planRevision },
        });
      }),
    closeAccount: (...ask) => noted(store.closeAccount(...ask), async (account) => account && noteStatus(account)),
    createKey: (tag, asked) =>
      noted(store.createKey(tag, asked), async (key) => {
        // A different id means that another key has the same hash: nothing was created.
        if (key?.id === asked.id) await noteGiven(store, note, tag, "key_create", key.id, { tag, ...asked });
      }),
    changeKey: (tag, keyId, change, revision) =>
      noted(store.changeKey(tag, keyId, change, revision), async (key) => key && noteKey(key, "key_change", change)),
    rotateKey: (tag, keyId, rotation, revision) =>
      noted(store.rotateKey(tag, keyId, rotation, revision), async (key) => {
        if (key === undefined || key === "too_many" || key.status === "revoked") return;
        const { hash } = rotation;
        await note("key_rotate", `${key.id}:${hash}`, {
          tag,
          id: key.id,
          hash,
          untilMs: key.previousUntilMs,
          revision: key.rotation,
        });
      }),
    revokeKey: (...ask) => noted(store.revokeKey(...ask), async (key) => key && noteKey(key, "key_revoke")),
    credit: (tag, payment) =>
      noted(store.credit(tag, payment), async ({ outcome }) => {
        const counted = outcome === "credited" || outcome === "duplicate";
        if (counted) await noteGiven(store, note, tag, "credit", payment.id, { tag, ...payment });
      }),
  };
}

function cardWrites(
  store: Store,
  note: Note,
): Pick<Writes, "grant" | "createCodes" | "voidCode" | "voidCodes" | "redeem" | "finishClaims"> {
  const noteVoid = async (code: Code | undefined) => {
    if (code?.state === "void") await note("code", `${code.id}:void`, { void: code.id });
  };
  return {
    grant: (tag, asked) =>
      noted(store.grant(tag, asked), async (card) => {
        if (card) await noteGiven(store, note, tag, "grant", asked.id, { ...asked, tag, fromMs: card.fromMs });
      }),
    createCodes: (facts, codes, batch) =>
      noted(store.createCodes(facts, codes, batch), async (outcome) => {
        if (outcome === "taken") return;
        for (let from = 0; from < codes.length; from += CODES_PER_RECORD) {
          const some = codes.slice(from, from + CODES_PER_RECORD);
          await note("code", some[0]?.id ?? "", { facts, codes: some, batch });
        }
      }),
    voidCode: (id) => noted(store.voidCode(id), noteVoid),
    voidCodes: (ids) => noted(store.voidCodes(ids), (codes) => Promise.all(codes.map(noteVoid))),
    redeem: (ask) =>
      noted(store.redeem(ask), async (answer) => {
        const has = answer?.outcome === "redeemed" || answer?.outcome === "again";
        if (has) await noteRedemption(store, note, { ...ask, code: answer.code, entitlement: answer.entitlement });
      }),
    finishClaims: (limit, onFinished) =>
      store.finishClaims(limit, async (redemption) => {
        await noteRedemption(store, note, redemption);
        await onFinished?.(redemption);
      }),
  };
}

/**
 * Journals only the removal of sign-in records, so that what was removed stays removed. Records themselves are not
 * restored to a store that has lost them: another gateway may have removed them since
 * (docs/decisions/only-the-end-of-a-sign-in-is-done-again.md).
 */
function signInWrites(store: Store, note: Note): Pick<Writes, "takeSignIn" | "dropSignIn" | "dropSignIns"> {
  const noteGone = async (owner: SignInOwner, records: readonly (SignInRecord | undefined)[]) => {
    for (const record of records) {
      if (!record) continue;
      const { kind, id, createdAtMs: keptByMs } = record;
      await note("sign_in_drop", `${owner}:${kind}:${id}`, { owner, kind, id, keptByMs });
    }
  };
  return {
    takeSignIn: (owner, ...ask) => noted(store.takeSignIn(owner, ...ask), (taken) => noteGone(owner, [taken])),
    // Journaled before the write: after it, what was there can no longer be read, not even on a retry.
    async dropSignIn(owner, kind, id, ...replay) {
      await noteGone(owner, [await store.findSignIn(owner, kind, id)]);
      return store.dropSignIn(owner, kind, id, ...replay);
    },
    async dropSignIns(owner, ...kinds) {
      const all = await store.listSignIns(owner);
      await noteGone(
        owner,
        all.filter(({ kind }) => kinds.includes(kind)),
      );
      return store.dropSignIns(owner, ...kinds);
    },
  };
}

/** Journals what the store has done, even if no replica has confirmed it; the operator gets that error afterwards. */
async function noted<T>(write: Promise<T>, note: (answer: T) => Promise<unknown>): Promise<T> {
  try {
    const answer = await write;
    await note(answer);
    return answer;
  } catch (error) {
    if (error instanceof UnconfirmedError) await note(error.answer as T);
    throw error;
  }
}

function noteRedemption(store: Store, note: Note, { tag, hash, code, entitlement }: Redemption): Promise<void> {
  const { id, card, plan, group, lastsMs, starts, quota, expiresAtMs, batch } = code;
  const facts = { card, plan, group, lastsMs, starts, quota, expiresAtMs, batch };
  return noteGiven(store, note, tag, "grant", id, { tag, hash, id, facts, fromMs: entitlement.fromMs });
}
