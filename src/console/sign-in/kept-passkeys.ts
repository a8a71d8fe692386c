/** Passkeys as the store keeps them: public keys, so that who reads them signs in by none. */
import type { SignInRecord } from "../../store/sign-ins.ts";
import { digestOf } from "./sessions.ts";

export interface KeptPasskey {
  /** The credential's id in base64url, up to 1,364 characters: its digest is the record's id. */
  readonly credential: string;
  /** The public key (COSE) in base64url. */
  readonly key: string;
  /** How often it has signed, as it says; 0 for one that does not count. */
  readonly counter: number;
  /** Ways to reach it, for the browser's own use. */
  readonly transports: readonly string[];
  /** Whether it may be on several devices. */
  readonly synced: boolean;
  /** What its owner calls it. */
  readonly name: string;
  readonly addedAtMs: number;
  /** When it last let its owner in. */
  readonly usedAtMs?: number | undefined;
}

interface ListedPasskey extends KeptPasskey {
  readonly id: string;
}

/** Of the record that has the passkey. */
export const passkeyId = (credential: string): string => digestOf(credential);

export function passkeyIn({ id, data }: SignInRecord): ListedPasskey {
  return { ...(JSON.parse(data) as KeptPasskey), id };
}

/** The passkeys among what an owner has, the oldest first. */
export function passkeysOf(records: readonly SignInRecord[]): readonly ListedPasskey[] {
  const own = records.filter(({ kind }) => kind === "passkey").map(passkeyIn);
  return own.sort((a, b) => a.addedAtMs - b.addedAtMs);
}
