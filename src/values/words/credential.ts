/** Recognizes credentials of other services, which some clients send where a name is expected. */

import { percentReadings } from "../key-search.ts";

/**
 * What vendors put in front of a credential, and the least that follows: keys of OpenAI, Anthropic, OpenRouter and all
 * who imitate them (`sk-`), Google, xAI, Groq, Hugging Face, Replicate, Perplexity, NVIDIA, Cerebras, Fireworks,
 * Together, Amazon, GitHub, GitLab, Slack and Stripe. Names of models that begin alike are shorter, or have no digit or
 * no such run.
 */
const PREFIXED = [
  "(?:sk|csk|pplx|xai|nvapi|glpat|xox[abeprs])-(?=[\\w-]*\\d)[\\w-]{16,}",
  "(?:gsk|hf|r8|fw|gh[opsur]|github_pat|(?:sk|pk|rk)_(?:live|test))_(?=\\w*\\d)[A-Za-z0-9]{16,}",
  // Together's are base64url.
  "tgp_v1_(?=[\\w-]*\\d)[\\w-]{16,}",
  "AIza[\\w-]{20,}",
  "(?:AQ|ya29|gw1)\\.[\\w-]{16,}",
  "(?:AKIA|ASIA)[A-Z0-9]{16}",
  "ABSK[A-Za-z0-9+/]{16,}",
].join("|");

const FORMS: readonly RegExp[] = [
  new RegExp(`(?<![A-Za-z0-9])(?:${PREFIXED})`),
  // A JSON Web Token: its first part is JSON in base64url, `{"`.
  /(?<![A-Za-z0-9])eyJ[\w-]{8,}\.[\w-]{8,}/,
  /(?<![a-z0-9])(?:bearer|basic)\s+[\w+/=.~-]{16,}/i,
  // Keys without a prefix (Azure, Mistral, Zhipu): letters and digits that no dash or dot divides into words.
  /(?<![A-Za-z0-9])(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{32,}(?![A-Za-z0-9])/i,
  /(?<![A-Za-z0-9])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![A-Za-z0-9])/i,
];

/** Whether a part of the text has the form of a credential of another service, also percent-encoded. */
export function resemblesCredential(text: string): boolean {
  return percentReadings(text).some((reading) => FORMS.some((form) => form.test(reading)));
}
