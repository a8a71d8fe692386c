/** Passkeys as the store keeps them: public keys, with which a reader of the store cannot sign in. */
import type { SignInRecord } from "../../store/sign-ins.ts";
import { digestOf } from "./sessions.ts";

export interface KeptPasskey {
  /** The credential's id in base64url, up to 1,364 characters; the record's id is its digest. */
  readonly credential: string;
  /** The public key (COSE) in base64url. */
  readonly key: string;
  /** The passkey's signature counter; 0 if it does not count. */
  readonly counter: number;
  /** Its transports, for the browser. */
  readonly transports: readonly string[];
  /** Whether it may be synced to several devices. */
  readonly synced: boolean;
  /** Its display name. */
  readonly name: string;
  readonly addedAtMs: number;
  /** When it was last used to sign in. */
  readonly usedAtMs?: number | undefined;
}

interface ListedPasskey extends KeptPasskey {
  readonly id: string;
}

/** The id of a passkey's record. */
export const passkeyId = (credential: string): string => digestOf(credential);

export function passkeyIn({ id, data }: SignInRecord): ListedPasskey {
  return { ...(JSON.parse(data) as KeptPasskey), id };
}

/** The passkeys among an owner's records, oldest first. */
export function passkeysOf(records: readonly SignInRecord[]): readonly ListedPasskey[] {
  const own = records.filter(({ kind }) => kind === "passkey").map(passkeyIn);
  return own.sort((a, b) => a.addedAtMs - b.addedAtMs);
}
