/** How people are asked who they are by a provider of OpenID Connect. */
import { LIMITS } from "../defaults.ts";
import { flag, listOf, optional, secret, section, text } from "./words.ts";

/** How a provider is reached, whoever comes in by it. */
const PROVIDER = {
  issuer: text({
    description: "Its address, as it names itself. https://, or http:// on this machine.",
    pattern: "https?://.+",
    rule: "an https:// URL",
    examples: ["https://login.example"],
  }),
  client_id: text({
    description: "By what name the provider knows this gateway.",
    pattern: "[!-~]{1,255}",
    rule: "1 to 255 printable ASCII characters",
  }),
  client_secret: secret({ description: "Shown to the provider alone." }),
  label: optional(
    text({
      description: "What the page calls the provider.",
      pattern: "[^\\p{C}]{1,40}",
      rule: "1 to 40 printable characters",
      examples: ["Example login"],
    }),
  ),
};

export const oidcSection = section(
  { description: "A provider of OpenID Connect that says who somebody is." },
  {
    ...PROVIDER,
    claim: text({
      description:
        "Which claim is the name of the account. Take one that people cannot change themselves; `email` counts only where it is verified.",
      pattern: "[!-~]{1,128}",
      rule: "the name of a claim, such as email",
      examples: ["email"],
    }),
    create_accounts: optional(
      flag({ description: "Whether a name without an account gets one; otherwise it is refused.", default: false }),
    ),
    plan: optional(
      text({
        description: "The plan of accounts that are made so; default_plan without it.",
        pattern: ".{1,128}",
        rule: "the name of a plan",
      }),
    ),
  },
);

export const operatorSection = section(
  { description: "The pages of operators, on the admin address, beside the admin token." },
  {
    public_url: optional(
      text({
        description: "Under what address browsers know the admin address. A provider sends people back there.",
        pattern: "https?://.+",
        rule: "an http:// or https:// URL",
        examples: ["https://tollgate-admin.example"],
      }),
    ),
    oidc: section(
      { description: "A provider of OpenID Connect that says who is an operator." },
      {
        ...PROVIDER,
        claim: text({
          description: "Which claim says so, a text or a list of texts. `email` counts only where it is verified.",
          pattern: "[!-~]{1,128}",
          rule: "the name of a claim, such as groups",
          examples: ["groups"],
        }),
        allowed: listOf(
          { description: "Values of the claim, one of which it must have, to the letter.", max: LIMITS.operatorsMax },
          text({ description: "A value.", pattern: ".{1,256}", rule: "1 to 256 characters" }),
        ),
      },
    ),
  },
);
