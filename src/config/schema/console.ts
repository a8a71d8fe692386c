/** The `console` section: the pages for owners of keys. */
import { DEFAULTS } from "../defaults.ts";
import { oidcSection, operatorSection } from "./oidc.ts";
import { after } from "./upstream.ts";
import { flag, optional, section, text } from "./words.ts";

export const consoleSection = section(
  { description: "The pages for owners of keys, on the address where clients connect." },
  {
    enabled: optional(
      flag({ description: "Whether there are any. Default: true, unless a site is set, which may have its own." }),
    ),
    path: optional(
      text({
        description: "Where they are.",
        default: DEFAULTS.consolePath,
        pattern: "(?:/[A-Za-z0-9_-]{1,64}){1,4}",
        rule: "a path such as /console, without a slash at its end",
      }),
    ),
    public_url: optional(
      text({
        description: "Under what address browsers know this gateway. Links and passkeys need it behind a front.",
        pattern: "https?://.+",
        rule: "an http:// or https:// URL",
        examples: ["https://api.example"],
      }),
    ),
    session: optional(after("How long who has signed in stays so.", DEFAULTS.consoleSessionMs)),
    invitation: optional(after("How long a sign-in link opens.", DEFAULTS.consoleInvitationMs)),
    oidc: optional(oidcSection),
    operator: optional(operatorSection),
    trusted_header: optional(
      text({
        description:
          "The header in which a front of trust_proxy names the account that it has let in. Ignored from anybody else.",
        pattern: "[Xx]-[A-Za-z0-9-]{1,62}",
        rule: "the name of a header that begins with x-",
        examples: ["x-forwarded-user"],
      }),
    ),
    support: optional(
      section(
        { description: "Whom the pages name for help." },
        {
          email: optional(
            text({
              description: "An address for mail.",
              pattern: '[^@\\s<>"]{1,64}@[A-Za-z0-9.-]{1,255}',
              rule: "an address such as help@example.com",
            }),
          ),
          url: optional(
            text({
              description: "A page for help.",
              pattern: "https?://.+",
              rule: "an http:// or https:// URL",
            }),
          ),
        },
      ),
    ),
  },
);
