/** The setting that upstreams, models and routes have alike: whether prompt caches are looked after. */
import { oneOf } from "./words.ts";

/** @param about the default, where the setting has one of its own. */
export const promptCache = (about: { readonly default?: string }) =>
  oneOf(
    {
      description:
        "auto: translated requests get what the upstream's prompt cache needs (breakpoints on messages, a key on responses); " +
        "client: only what the client asks for.",
      ...about,
    },
    ["auto", "client"],
  );
