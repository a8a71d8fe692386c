/** Which account a provider's words name. */

/** What an account may be called (`Name` of schema.ts): of what else a provider may say nothing is an account. */
const ACCOUNT_NAME = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/;

/** Why a claim names no account. */
export type ClaimFault = "claim_missing" | "claim_no_name" | "email_unverified";

/**
 * The account's name: the claim to the letter. Nothing is cut off or made small, since two people could become one by that.
 * @param claims of one source: whether an address is verified is to be said by whoever says the address.
 */
export function nameIn(
  claims: Readonly<Record<string, unknown>>,
  claim: string,
): { readonly name: string } | { readonly fault: ClaimFault } {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (value === undefined || value === null) return { fault: "claim_missing" };
  if (typeof value !== "string" || !ACCOUNT_NAME.test(value)) return { fault: "claim_no_name" };
  // Anybody may write anybody's address into a form (OpenID Connect Core 1.0, section 5.7).
  if (claim === "email" && claims.email_verified !== true) return { fault: "email_unverified" };
  return { name: value };
}
