/** Passkeys (WebAuthn Level 3): what a browser is asked, and whether its answer holds. The only importer of its package. */
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

/** EdDSA, ES256, RS256 (RFC 9053 and 8812): what authenticators have. */
const ALGORITHMS = [-8, -7, -257];

type Challenge = Uint8Array<ArrayBuffer>;

/** What a browser is asked to make a passkey by. @param user the account's tag, which the passkey names when it signs in. */
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
    // Found without a name being typed, and never by possession alone: it is the only proof.
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    supportedAlgorithmIDs: ALGORITHMS,
  });
}

type NewPasskey = Pick<KeptPasskey, "credential" | "key" | "counter" | "transports" | "synced">;

/** What was made; undefined when the answer does not hold. @param challenge in base64url. */
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
  // Whatever a browser sends in this member has passed: nobody has signed it.
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
 * The answer without what the authenticator says of its make (the attestation), for which nobody has asked, and which some say all
 * the same. The package would follow the certificates in it: it asks the address that one names for revoked ones, as soon as a
 * root that comes along has signed it. So whoever answers could have this process ask any address, and read without an end.
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
/** An RSA key of 8,192 bits has 1,040; no authenticator has a larger one, and a record of a sign-in is short. */
const KEY_BYTES_MAX = 1_280;

/** What a browser is asked to sign in by: any passkey that it has for this host. */
export function requestOptions({ host }: PageSite, challenge: Challenge): Promise<object> {
  return generateAuthenticationOptions({ rpID: host, challenge, timeout: CHALLENGE_MS, userVerification: "required" });
}

/**
 * The passkey's counter from now on; undefined when the answer does not hold: another site's, another challenge's, another
 * key's, or one of a copy, whose counter is not ahead of the one that is known.
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

/** The package throws at whatever a stranger has sent and is not as it must be. */
async function holding<T>(check: () => Promise<T>): Promise<T | undefined> {
  try {
    return await check();
  } catch {
    return undefined;
  }
}
