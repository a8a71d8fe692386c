/** The schema of the `redis` section: connection settings that are not part of the address in `store`. */

import { tls } from "./tls.ts";
import { optional, secret, section, text } from "./words.ts";

export const redis = section(
  {
    description:
      "Connection settings for the Redis of `store` that are not part of its address. A changed tls section applies to new connections; sentinel needs a restart.",
  },
  {
    tls: optional(tls("store")),
    sentinel: optional(
      section(
        {
          description:
            "User name and password for the sentinels. Those in the address are for the Redis servers that they watch.",
        },
        {
          username: optional(text({ description: "The user name.", pattern: ".+", rule: "a user name" })),
          password: optional(secret({ description: "The password of that user, or of `requirepass`." })),
        },
      ),
    ),
  },
);
