/** The `prompt_cache` setting of upstreams, models and routes. */
import { oneOf } from "./words.ts";

/** @param about the default, if the setting has its own. */
export const promptCache = (about: { readonly default?: string }) =>
  oneOf(
    {
      description:
        "auto: translated requests get what the upstream's prompt cache needs (breakpoints for messages, a key for responses); " +
        "client: they get only what the client asks for.",
      ...about,
    },
    ["auto", "client"],
  );
