/** The part of the schema that says what something costs: prices, service tiers, steps for long input, tools, extras. */
import { DEFAULTS, LIMITS } from "../defaults.ts";
import { count, listOf, mapOf, optional, PLAIN_NAMES, section, usd } from "./words.ts";

/** Tiers that are asked for together are joined. */
const TIER_NAMES = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$",
  rule: "starts with a letter or digit, followed by up to 63 of A-Z a-z 0-9 . _ + -",
};

const derivedPrices = {
  cached_input: optional(
    usd({
      description:
        "Input read from the upstream's cache. Default: the input price; must be named in tiers, steps and costs where the price above is below its input.",
    }),
  ),
  cache_write: optional(
    usd({ description: "Input written to the upstream's cache (5 minutes). Default: 1.25 x input." }),
  ),
  cache_write_1h: optional(usd({ description: "Input written to the cache for an hour. Default: 2 x input." })),
};

const unitPrices = () => ({
  input: usd({ description: "Input tokens that no cache knew.", examples: ["1.25"] }),
  ...derivedPrices,
  output: usd({ description: "Output tokens, reasoning included.", examples: ["10"] }),
});

const steps = (replaced: string) =>
  optional(
    listOf(
      {
        description: `Prices that replace ${replaced} when all input of a request exceeds \`tokens\`.`,
        max: LIMITS.stepsPerPriceMax,
      },
      section(
        { description: "One step, in US dollars per million tokens." },
        {
          tokens: count({ description: "Input tokens above which it applies.", min: 1, max: LIMITS.tokensMax }),
          ...unitPrices(),
        },
      ),
    ),
  );

/** A model's price, or what a route costs. */
export const price = (description: string) =>
  section(
    { description: `${description} In US dollars per million tokens.`, examples: [{ input: "1.25", output: "10" }] },
    {
      ...unitPrices(),
      tiers: optional(
        mapOf(
          {
            description:
              "Prices that replace these when a request names the service tier, speed, region (inference_geo: us), " +
              "reasoning mode (pro) or output (audio) of this name; several at once are joined by +, in that order. " +
              "Any word that a request may say is a tier, but those for the standard prices (auto, default, standard, " +
              "standard_only, global) and what looks like a slip of a known one.",
            max: LIMITS.tiersPerPriceMax,
            names: TIER_NAMES,
          },
          section(
            { description: "Prices of this tier, in US dollars per million tokens." },
            { ...unitPrices(), above_tokens: steps("the tier's own") },
          ),
        ),
      ),
      above_tokens: steps("the standard ones"),
      tools: optional(
        mapOf(
          {
            description:
              "US dollars per call of a hosted tool. A tool without a price is refused. The name is the tool's type without " +
              "date or preview (web_search_20250305: web_search), or a member that switches the tool on; servers make up tools, " +
              "so any name is taken but the client's own (function, custom) and what looks like a slip of a known one.",
            max: LIMITS.toolsPerPriceMax,
            names: PLAIN_NAMES,
            examples: [{ web_search: "0.01" }],
          },
          usd({ description: "US dollars per call." }),
        ),
      ),
      options: optional(
        mapOf(
          {
            description:
              "US dollars per request that asks for an extra by this member of its body; 0 allows it for nothing. " +
              "One without a price is refused. Only members that docs/members.md lists as options are ever charged.",
            max: LIMITS.optionsPerPriceMax,
            names: PLAIN_NAMES,
            examples: [{ search_parameters: "0.025" }],
          },
          usd({ description: "US dollars per request." }),
        ),
      ),
    },
  );

/** How many calls of hosted tools are held for and charged. */
export const toolCalls = () =>
  section(
    { description: "Calls of each hosted tool that a request offers and that has a price." },
    {
      held: optional(
        count({
          description:
            "Calls of each that are held for; more are charged to free funds. So many are charged where a client leaves a reply that does not show its calls. At most `max`, which is held for an account whose charges went beyond its funds again and again.",
          default: DEFAULTS.toolCallsHeld,
          min: 0,
          max: LIMITS.toolCallsMax,
        }),
      ),
      max: optional(
        count({
          description:
            "Calls of each that a request is charged for at most; what the server counts beyond is absorbed.",
          default: DEFAULTS.toolCallsMax,
          min: 0,
          max: LIMITS.toolCallsMax,
        }),
      ),
    },
  );
