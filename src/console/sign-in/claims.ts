/** Maps the claims of a provider to an account name. */

import { ACCOUNT_NAME } from "../../values/words/account-name.ts";

/** Why a claim names no account. */
export type ClaimFault = "claim_missing" | "claim_no_name" | "email_unverified";

/**
 * The account's name, which equals the claim exactly. Nothing is cut off or lowercased, because two people could then
 * get the same name.
 * @param claims of one source, because the source that sends an email address must also say whether it is verified
 */
export function nameIn(
  claims: Readonly<Record<string, unknown>>,
  claim: string,
): { readonly name: string } | { readonly fault: ClaimFault } {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (value === undefined || value === null) return { fault: "claim_missing" };
  if (typeof value !== "string" || !ACCOUNT_NAME.test(value)) return { fault: "claim_no_name" };
  // Only a verified email address counts, because anyone can enter any address in a form (OpenID Connect Core 1.0,
  // section 5.7).
  if (claim === "email" && claims.email_verified !== true) return { fault: "email_unverified" };
  return { name: value };
}
