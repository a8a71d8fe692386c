/**
 * Challenges that a passkey signs: created here, sealed for the browser to return, valid for a few minutes, and
 * accepted once. Unsigned challenges are not stored, so that requests for them cost no memory.
 */

import type { SignInOwner, SignIns } from "../../store/sign-ins.ts";
import type { RandomBytes } from "../../values/key.ts";
import type { Clock } from "../../values/time.ts";
import { AdminRefusal } from "../refusal.ts";
import { digestOf, type Sealer } from "./sessions.ts";

const CHALLENGE_BYTES = 32;
const SPENT_BY_BYTES = 9;
/** The time that a person has to use their passkey. */
export const CHALLENGE_MS = 5 * 60_000;

interface ChallengeParts {
  readonly store: Pick<SignIns, "keepSignIn">;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly random: RandomBytes;
}

export class Challenges {
  readonly #parts: ChallengeParts;

  constructor(parts: ChallengeParts) {
    this.#parts = parts;
  }

  /** @param purpose what it is signed for; it can be opened only for the same purpose */
  make(purpose: string): { readonly challenge: Uint8Array<ArrayBuffer>; readonly sealed: string } {
    const { sealer, clock, random } = this.#parts;
    const challenge = Uint8Array.from(random(CHALLENGE_BYTES));
    const content = { challenge: Buffer.from(challenge).toString("base64url"), until: clock.wallMs() + CHALLENGE_MS };
    return { challenge, sealed: sealer.seal(Buffer.from(JSON.stringify(content)), contextOf(purpose)) };
  }

  /** The challenge in base64url; undefined if it was not created here, has another purpose, or has expired. */
  open(sealed: string, purpose: string): string | undefined {
    const opened = this.#parts.sealer.open(sealed, contextOf(purpose));
    if (opened === undefined) return undefined;
    const { challenge, until } = JSON.parse(Buffer.from(opened).toString()) as {
      readonly challenge: string;
      readonly until: number;
    };
    return until <= this.#parts.clock.wallMs() ? undefined : challenge;
  }

  /**
   * Uses up a text that must be accepted only once, for an account that the caller has proved to own.
   * @returns whether this was the first time
   * @throws AdminRefusal 429 if so many were used up lately that the store cannot record more
   */
  async spend(tag: SignInOwner, text: string, lastsMs = CHALLENGE_MS): Promise<boolean> {
    const { store, random } = this.#parts;
    // Identifies this call in the store, among all others that use up the same text.
    const data = JSON.stringify({ by: Buffer.from(random(SPENT_BY_BYTES)).toString("base64url") });
    const record = { kind: "spent", id: digestOf(text), data, lastsMs, only: "new" } as const;
    const answer = await store.keepSignIn(tag, record);
    if (answer === "too_many") throw tooManyLately();
    return answer === "kept";
  }
}

function tooManyLately(): AdminRefusal {
  const message = "There were too many sign-ins in the last minutes.";
  return new AdminRefusal(429, "too_many_sign_ins", message, "Try again in a minute.", { "retry-after": "60" });
}

const contextOf = (purpose: string): string => `console challenge ${purpose}`;
