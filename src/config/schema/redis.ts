/** The schema of what the address of a store on Redis does not say. */

import { tls } from "./tls.ts";
import { optional, secret, section, text } from "./words.ts";

export const redis = section(
  { description: "How the Redis of `store` is reached, as far as its address does not say it. Restart to change." },
  {
    tls: optional(tls("store")),
    sentinel: optional(
      section(
        { description: "Who we are to the sentinels, where they ask: the address says who we are to what they watch." },
        {
          username: optional(text({ description: "A user of theirs.", pattern: ".+", rule: "a name" })),
          password: optional(secret({ description: "Its password, or that of `requirepass`." })),
        },
      ),
    ),
  },
);
