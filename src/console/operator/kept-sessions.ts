/**
 * Sessions of operators, also while the store is unreachable: those that this process has seen stay valid, and new ones
 * are valid at this process. Otherwise no operator could view or confirm a store that waits for a confirmation.
 */
import { StoreError } from "../../store/contract.ts";
import { type NewSignIn, SIGN_INS_MAX, type SignIns } from "../../store/sign-ins.ts";
import type { Clock } from "../../values/time.ts";

type SessionStore = Pick<SignIns, "keepSignIn" | "findSignIn" | "dropSignIn">;

interface KeptSession {
  readonly record: NewSignIn;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** Whether the session was never saved in the store. */
  readonly isOnlyHere: boolean;
}

/** @param store asked first; sessions that this process has started count only while the store does not answer */
export function keptSessions(store: SessionStore, clock: Clock): SessionStore {
  /** Oldest first. */
  const kept = new Map<string, KeptSession>();
  const keep = (record: NewSignIn, isOnlyHere: boolean) => {
    const createdAtMs = clock.wallMs();
    kept.delete(record.id);
    kept.set(record.id, { record, createdAtMs, expiresAtMs: createdAtMs + (record.lastsMs ?? 0), isOnlyHere });
    const [oldest] = kept.keys();
    if (kept.size > SIGN_INS_MAX && oldest !== undefined) kept.delete(oldest);
  };
  const keptHere = (id: string) => {
    const found = kept.get(id);
    if (found === undefined || found.expiresAtMs <= clock.wallMs()) return undefined;
    const { record, createdAtMs, expiresAtMs } = found;
    return { ...record, createdAtMs, expiresAtMs };
  };
  return {
    async keepSignIn(owner, record) {
      try {
        const outcome = await store.keepSignIn(owner, record);
        keep(record, false);
        return outcome;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        keep(record, true);
        return "kept";
      }
    },
    async findSignIn(owner, kind, id) {
      if (kept.get(id)?.isOnlyHere) return keptHere(id);
      try {
        const found = await store.findSignIn(owner, kind, id);
        // Another process ended the session.
        if (found === undefined) kept.delete(id);
        return found;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        return keptHere(id);
      }
    },
    async dropSignIn(owner, kind, id, keptByMs) {
      const here = kept.get(id);
      kept.delete(id);
      if (here?.isOnlyHere) return true;
      return store.dropSignIn(owner, kind, id, keptByMs);
    },
  };
}
