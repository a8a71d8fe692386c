/** The passkeys and sessions of an account, in the form of the answer. */
import type { SignInRecord } from "../../store/sign-ins.ts";
import { passkeysOf } from "../sign-in/kept-passkeys.ts";
import { sessionsOf } from "../sign-in/sessions.ts";
import type { AccessAnswer } from "./session.ts";

/** @param own the session that asks, if it is one of them */
export function showAccess(account: string, records: readonly SignInRecord[], own?: string): AccessAnswer {
  const at = (ms: number) => new Date(ms).toISOString();
  return {
    account,
    passkeys: passkeysOf(records).map(({ id, name, synced, addedAtMs, usedAtMs }) => ({
      id,
      name,
      synced,
      added_at: at(addedAtMs),
      used_at: usedAtMs === undefined ? null : at(usedAtMs),
    })),
    sessions: sessionsOf(records).map(({ id, way, from, agent, begunAtMs, endsAtMs }) => ({
      id,
      way,
      from,
      agent,
      begun_at: at(begunAtMs),
      ends_at: at(endsAtMs),
      is_this: id === own,
    })),
  };
}
