/** Passkeys with the browser's own functions (WebAuthn Level 3, section 5.1.9), without a library. */
import type { PasskeyOptionsAnswer } from "../../../answers/session.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { T } from "../../texts/texts.ts";

/** Whether this browser supports passkeys in the form that these pages use. */
export function mayHavePasskeys(): boolean {
  return typeof PublicKeyCredential === "function" && "parseRequestOptionsFromJSON" in PublicKeyCredential;
}

/** Signs in with any passkey that the browser has for this host. @throws ApiError */
export async function signInByPasskey(): Promise<void> {
  const { options, sealed } = await ask<PasskeyOptionsAnswer>("/sign-in/passkey/options", { method: "POST" });
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON);
  const credential = await answered(navigator.credentials.get({ publicKey }));
  await ask("/sign-in/passkey", { method: "POST", body: { sealed, credential } });
}

/** Creates a passkey in the browser and adds it. @throws ApiError */
export async function addPasskey(name: string): Promise<void> {
  const { options, sealed } = await ask<PasskeyOptionsAnswer>("/passkeys/options", { method: "POST" });
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as PublicKeyCredentialCreationOptionsJSON);
  const credential = await answered(navigator.credentials.create({ publicKey }));
  await ask("/passkeys", { method: "POST", body: { sealed, name, credential } });
}

/** The person's answer to the browser's dialog. */
async function answered(asked: Promise<Credential | null>): Promise<object> {
  const credential = await asked.catch((error: unknown) => {
    const isKnown = error instanceof DOMException && error.name === "InvalidStateError";
    const words = T.owner.access;
    throw new ApiError(0, "passkey_not_given", isKnown ? words.alreadyHere : words.notGiven, words.notGivenRemedy);
  });
  return (credential as PublicKeyCredential).toJSON();
}
