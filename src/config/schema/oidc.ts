/** How people are asked who they are by a provider of OpenID Connect. */
import { flag, optional, secret, section, text } from "./words.ts";

export const oidcSection = section(
  { description: "A provider of OpenID Connect that says who somebody is." },
  {
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
    label: optional(
      text({
        description: "What the page calls the provider.",
        pattern: "[^\\p{C}]{1,40}",
        rule: "1 to 40 printable characters",
        examples: ["Example login"],
      }),
    ),
  },
);
