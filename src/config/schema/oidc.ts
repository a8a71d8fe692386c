/** Sign-in through an OpenID Connect provider. */
import { LIMITS } from "../defaults.ts";
import { flag, listOf, optional, secret, section, text } from "./words.ts";

/** How a provider is reached; the same for owners and operators. */
const PROVIDER = {
  issuer: text({
    description: "The provider's issuer URL, exactly as the provider gives it. https://, or http:// on this machine.",
    pattern: "https?://.+",
    rule: "an https:// URL",
    examples: ["https://login.example"],
  }),
  client_id: text({
    description: "This gateway's client id at the provider.",
    pattern: "[!-~]{1,255}",
    rule: "1 to 255 printable ASCII characters",
  }),
  client_secret: secret({ description: "This gateway's client secret. It is sent only to the provider." }),
  label: optional(
    text({
      description: "Name of the provider on the sign-in page.",
      pattern: "[^\\p{C}]{1,40}",
      rule: "1 to 40 printable characters",
      examples: ["Example login"],
    }),
  ),
};

export const oidcSection = section(
  { description: "Sign-in of key owners through an OpenID Connect provider." },
  {
    ...PROVIDER,
    claim: text({
      description:
        "The claim that holds the account's name. Use one that people cannot change themselves. `email` counts only if it is verified.",
      pattern: "[!-~]{1,128}",
      rule: "the name of a claim, such as email",
      examples: ["email"],
    }),
    create_accounts: optional(
      flag({
        description: "Whether an account is created if there is none of this name. Otherwise sign-in is refused.",
        default: false,
      }),
    ),
    plan: optional(
      text({
        description: "The plan of accounts that are created this way. Default: default_plan.",
        pattern: ".{1,128}",
        rule: "the name of a plan",
      }),
    ),
  },
);

export const operatorSection = section(
  { description: "Sign-in to the operators' pages on the admin address, in addition to the admin token." },
  {
    public_url: optional(
      text({
        description:
          "The origin under which browsers reach the admin address. The provider redirects people back to it.",
        pattern: "https?://.+",
        rule: "an origin such as https://api.example, without a path",
        examples: ["https://tollgate-admin.example"],
      }),
    ),
    oidc: section(
      { description: "The OpenID Connect provider that identifies operators." },
      {
        ...PROVIDER,
        claim: text({
          description:
            "The claim that identifies operators, a string or a list of strings. `email` counts only if it is verified.",
          pattern: "[!-~]{1,128}",
          rule: "the name of a claim, such as groups",
          examples: ["groups"],
        }),
        allowed: listOf(
          {
            description: "Values of the claim that make somebody an operator. One of them must match exactly.",
            max: LIMITS.operatorsMax,
          },
          text({ description: "A value.", pattern: ".{1,256}", rule: "1 to 256 characters" }),
        ),
      },
    ),
  },
);
