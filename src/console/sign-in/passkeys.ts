/**
 * Passkeys (WebAuthn Level 3): options for browsers, and the verification of their answers. The only importer of its
 * package.
 */
import {
  type AuthenticationResponseJSON,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from "@simplewebauthn/server";
import { decodeAttestationObject, isoBase64URL, isoCBOR } from "@simplewebauthn/server/helpers";
import { arrayOf } from "../../values/json-object.ts";
import { CHALLENGE_MS } from "./challenges.ts";
import type { KeptPasskey } from "./kept-passkeys.ts";
import type { PageSite } from "./site.ts";

/** EdDSA, ES256, RS256 (RFC 9053 and 8812): the algorithms of common authenticators. */
const ALGORITHMS = [-8, -7, -257];

type Challenge = Uint8Array<ArrayBuffer>;

/**
 * The options with which a browser creates a passkey.
 * @param user the account's tag, which the passkey returns at each sign-in
 */
export function creationOptions(
  { host }: PageSite,
  user: { readonly tag: string; readonly name: string },
  challenge: Challenge,
  known: readonly KeptPasskey[],
): Promise<object> {
  return generateRegistrationOptions({
    rpName: "Tollgate",
    rpID: host,
    userName: user.name,
    userID: Uint8Array.from(Buffer.from(user.tag)),
    challenge,
    timeout: CHALLENGE_MS,
    attestationType: "none",
    excludeCredentials: known.map(({ credential, transports }) => ({ id: credential, transports: [...transports] })),
    // Discoverable, so that no name has to be typed; with user verification, because the passkey is the only proof.
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    supportedAlgorithmIDs: ALGORITHMS,
  });
}

type NewPasskey = Pick<KeptPasskey, "credential" | "key" | "counter" | "transports" | "synced">;

/** The new passkey; undefined if the answer is invalid. @param challenge in base64url */
export async function checkCreation(
  site: PageSite,
  challenge: string,
  response: unknown,
): Promise<NewPasskey | undefined> {
  const checked = await holding(async () =>
    verifyRegistrationResponse({
      response: withoutAttestation(response as RegistrationResponseJSON),
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.host,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    }),
  );
  if (!checked?.verified) return undefined;
  const { credential, credentialDeviceType } = checked.registrationInfo;
  if (credential.publicKey.length > KEY_BYTES_MAX) return undefined;
  // Not signed, so a browser can send anything in this member.
  const transports = arrayOf(credential.transports).filter(
    (one): one is string => typeof one === "string" && /^[a-z-]{1,20}$/.test(one),
  );
  return {
    credential: credential.id,
    key: Buffer.from(credential.publicKey).toString("base64url"),
    counter: credential.counter,
    transports: transports.slice(0, TRANSPORTS_MAX),
    synced: credentialDeviceType === "multiDevice",
  };
}

/**
 * Removes the attestation, which was not requested but which some authenticators send anyway. Otherwise the package
 * would verify its certificates and, if they lead to a known root, request a revocation list from an address in them.
 * So a client could make this process request any address, and read an endless answer.
 */
function withoutAttestation({ response, ...said }: RegistrationResponseJSON): RegistrationResponseJSON {
  const authData = decodeAttestationObject(isoBase64URL.toBuffer(response.attestationObject)).get("authData");
  const bare = new Map<string, string | Uint8Array | Map<string, never>>([
    ["fmt", "none"],
    ["attStmt", new Map<string, never>()],
    ["authData", authData],
  ]);
  return { ...said, response: { ...response, attestationObject: isoBase64URL.fromBuffer(isoCBOR.encode(bare)) } };
}

const TRANSPORTS_MAX = 8;
/** A public RSA key of 8,192 bits has 1,040 bytes; no authenticator has a larger one. The limit keeps records short. */
const KEY_BYTES_MAX = 1_280;

/** The options with which a browser signs in: with any passkey that it has for this host. */
export function requestOptions({ host }: PageSite, challenge: Challenge): Promise<object> {
  return generateAuthenticationOptions({ rpID: host, challenge, timeout: CHALLENGE_MS, userVerification: "required" });
}

/**
 * The passkey's new counter; undefined if the answer is invalid: from another site, for another challenge, by another
 * key, or by a copy, whose counter is not above the known one.
 */
export async function checkRequest(
  site: PageSite,
  challenge: string,
  response: unknown,
  { credential, key, counter }: KeptPasskey,
): Promise<number | undefined> {
  const checked = await holding(async () =>
    verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.host,
      credential: { id: credential, publicKey: Uint8Array.from(Buffer.from(key, "base64url")), counter },
      requireUserVerification: true,
    }),
  );
  return checked?.verified ? checked.authenticationInfo.newCounter : undefined;
}

/** The package throws on invalid input from clients. */
async function holding<T>(check: () => Promise<T>): Promise<T | undefined> {
  try {
    return await check();
  } catch {
    return undefined;
  }
}
