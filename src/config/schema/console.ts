/** The schema of the `console` section: the pages for key owners. */
import { DEFAULTS, LIMITS } from "../defaults.ts";
import { oidcSection, operatorSection } from "./oidc.ts";
import { after } from "./upstream.ts";
import { flag, optional, section, text } from "./words.ts";

export const consoleSection = section(
  { description: "The pages for key owners, on the `listen` address." },
  {
    enabled: optional(
      flag({
        description:
          "Whether the pages are served. Default: true, unless `site` is set: a site may have its own pages.",
      }),
    ),
    path: optional(
      text({
        description: "Path of the pages.",
        default: DEFAULTS.consolePath,
        pattern: "(?:/[A-Za-z0-9_-]{1,64}){1,4}",
        rule: "a path such as /console, without a slash at its end",
      }),
    ),
    public_url: optional(
      text({
        description: "The origin under which browsers reach this gateway. Behind a front, links and passkeys need it.",
        pattern: "https?://.+",
        rule: "an origin such as https://api.example, without a path",
        examples: ["https://api.example"],
      }),
    ),
    session: optional(
      after("How long a session lasts after sign-in.", DEFAULTS.consoleSessionMs, LIMITS.consoleSessionMsMax),
    ),
    invitation: optional(
      after("How long a sign-in link is valid.", DEFAULTS.consoleInvitationMs, LIMITS.consoleInvitationMsMax),
    ),
    oidc: optional(oidcSection),
    operator: optional(operatorSection),
    trusted_header: optional(
      text({
        description:
          "Header in which a front listed in trust_proxy names the account that it has authenticated. It is ignored from all other peers.",
        pattern: "[Xx]-[A-Za-z0-9-]{1,62}",
        rule: "a header name that begins with x-",
        examples: ["x-forwarded-user"],
      }),
    ),
    support: optional(
      section(
        { description: "Contacts for help that the pages show." },
        {
          email: optional(
            text({
              description: "An email address.",
              pattern: '[^@\\s<>"]{1,64}@[A-Za-z0-9.-]{1,255}',
              rule: "an email address such as help@example.com",
            }),
          ),
          url: optional(
            text({
              description: "The URL of a help page.",
              pattern: "https?://.+",
              rule: "an http:// or https:// URL",
            }),
          ),
        },
      ),
    ),
  },
);
