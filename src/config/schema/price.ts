/** The schema of prices: unit prices, service tiers, steps for long input, tools and options. */
import { DEFAULTS, LIMITS } from "../defaults.ts";
import { count, listOf, mapOf, optional, PLAIN_NAMES, section, usd } from "./words.ts";

/** Tiers that apply at the same time are joined by +. */
const TIER_NAMES = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$",
  rule: "starts with a letter or digit, followed by up to 63 characters of A-Z a-z 0-9 . _ + -",
};

const derivedPrices = {
  cached_input: optional(
    usd({
      description:
        "Input read from the upstream's cache. Default: the input price. Tiers, steps and costs must name it if the price that they replace or are compared with has cached_input below input.",
    }),
  ),
  cache_write: optional(
    usd({ description: "Input written to the upstream's cache (5 minutes). Default: 1.25 x input." }),
  ),
  cache_write_1h: optional(usd({ description: "Input written to the cache for an hour. Default: 2 x input." })),
};

const unitPrices = () => ({
  input: usd({ description: "Input tokens that were neither read from nor written to a cache.", examples: ["1.25"] }),
  ...derivedPrices,
  output: usd({ description: "Output tokens, including reasoning.", examples: ["10"] }),
});

const steps = (replaced: string) =>
  optional(
    listOf(
      {
        description: `Prices that replace ${replaced} when the total input of a request exceeds \`tokens\`.`,
        max: LIMITS.stepsPerPriceMax,
      },
      section(
        { description: "One step, in US dollars per million tokens." },
        {
          tokens: count({ description: "Input tokens above which the step applies.", min: 1, max: LIMITS.tokensMax }),
          ...unitPrices(),
        },
      ),
    ),
  );

/** A model's price, or a route's cost. */
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
              "Any name is accepted, except the names of the standard prices (auto, default, standard, " +
              "standard_only, global) and apparent misspellings of a known tier.",
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
              "US dollars per call of a hosted tool. The name is the tool's type without date or preview " +
              "(web_search_20250305: web_search), or the member that switches the tool on. Any name is accepted, except the client's own " +
              "tools (function, custom) and apparent misspellings of a known tool. A tool without a price is left out, or refused if the request demands it.",
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
              "US dollars per request that has this member in its body, which asks for an extra. 0 allows it free of charge. " +
              "A member without a price is refused. Only members that docs/members.md lists as options can have a price.",
            max: LIMITS.optionsPerPriceMax,
            names: PLAIN_NAMES,
            examples: [{ search_parameters: "0.025" }],
          },
          usd({ description: "US dollars per request." }),
        ),
      ),
    },
  );

/** The schema of `tool_calls`: how many calls of hosted tools are held for and charged. */
export const toolCalls = () =>
  section(
    { description: "Limits on the calls of each hosted tool that a request offers and that has a price." },
    {
      held: optional(
        count({
          description:
            "Calls of each tool that the hold covers. Further calls are charged to free funds. The same number is charged if a client disconnects from a reply that does not show its calls. At most `max`, which is held instead for an account whose charges repeatedly exceeded its funds.",
          default: DEFAULTS.toolCallsHeld,
          min: 0,
          max: LIMITS.toolCallsMax,
        }),
      ),
      max: optional(
        count({
          description:
            "Most calls of each tool that one request is charged for. Calls that the upstream counts beyond this are absorbed.",
          default: DEFAULTS.toolCallsMax,
          min: 0,
          max: LIMITS.toolCallsMax,
        }),
      ),
    },
  );
