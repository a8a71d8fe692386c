/** The part of the schema that says what is sold: plans, models, prices, groups and cards. */
import { EFFORTS } from "../../values/catalog.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import { price, toolCalls } from "./price.ts";
import { promptCache } from "./prompt-cache.ts";
import { rules } from "./rules.ts";
import {
  count,
  duration,
  factor,
  flag,
  listOf,
  MODEL_NAMES,
  mapOf,
  nothing,
  oneOf,
  optional,
  PLAIN_NAMES,
  plainName,
  positive,
  section,
  text,
  usd,
} from "./words.ts";

/** How a chat upstream thinks, and what it wants back of it. */
const chatThinking = {
  reasoning_content: optional(
    oneOf({ description: "read: the upstream emits it; roundtrip: it also wants it back." }, [
      "off",
      "read",
      "roundtrip",
    ]),
  ),
  reasoning_field: optional(
    oneOf({ description: "Where a chat upstream wants its reasoning back; think_tags: in the text." }, [
      "reasoning_content",
      "reasoning",
      "thinking_parts",
      "think_tags",
    ]),
  ),
  thinking_switch: optional(
    oneOf({ description: "The member that switches a chat upstream's thinking." }, [
      "reasoning_effort",
      "thinking",
      "enable_thinking",
      "chat_template_kwargs",
      "reasoning",
    ]),
  ),
  thinking_in_text: optional(
    oneOf({ description: "<think> stands in a chat upstream's text; unopened: only </think> does." }, [
      "none",
      "tags",
      "unopened",
    ]),
  ),
  call_signatures: optional(
    oneOf({ description: "Whose thought signatures a chat upstream demands on calls (Gemini 3)." }, [
      "none",
      "google",
      "vertex",
    ]),
  ),
};

/**
 * Names as in `values/catalog.ts` (docs/translation-rules.md rule 6); what is left out comes from the model, then from
 * the upstream's protocol.
 */
const capabilities = (description: string) =>
  section(
    { description },
    {
      sampling: optional(oneOf({ description: "none: temperature, top_p and top_k are dropped." }, ["full", "none"])),
      thinking: optional(
        oneOf({ description: "How a messages upstream thinks." }, [
          "none",
          "budget",
          "adaptive",
          "always",
          "between",
          "both",
        ]),
      ),
      thinking_off: optional(
        oneOf({ description: "When a client switches thinking off and the model has no switch; reject: 400." }, [
          "ignore",
          "reject",
        ]),
      ),
      progress_in_thinking: optional(flag({ description: "Text between tool calls arrives in thinking blocks." })),
      account_bound_thinking: optional(flag({ description: "Thinking blocks are bound to the upstream's account." })),
      efforts: optional(
        listOf(
          { description: "Efforts the upstream knows; empty: it has no such parameter.", max: EFFORTS.length },
          oneOf({ description: "An effort." }, EFFORTS),
        ),
      ),
      forced_tool_choice: optional(flag({ description: "A tool can be demanded." })),
      prefill: optional(flag({ description: "The conversation may end with a begun answer." })),
      mid_system: optional(flag({ description: "System turns may stand in the middle." })),
      structured_outputs: optional(flag({ description: "Answers can be held to a JSON Schema." })),
      custom_tools: optional(flag({ description: "Free-form tools are native." })),
      namespace_tools: optional(flag({ description: "Tools may be grouped in namespaces." })),
      ...chatThinking,
      max_tokens_field: optional(
        oneOf({ description: "The limit's name at a chat upstream." }, ["max_tokens", "max_completion_tokens"]),
      ),
      system_role: optional(oneOf({ description: "The system role of a chat upstream." }, ["system", "developer"])),
      openai_native: optional(flag({ description: "Fields that only OpenAI knows may be sent." })),
      stop: optional(oneOf({ description: "emulate: stop sequences are applied here." }, ["native", "emulate"])),
      stream_usage: optional(flag({ description: "A chat upstream accepts stream_options.include_usage." })),
      prompt_cache: optional(promptCache({})),
      prompt_cache_min_tokens: optional(
        count({
          description: "Shortest beginning that a messages upstream caches, in tokens; no breakpoint is added below.",
          min: 0,
          max: LIMITS.tokensMax,
        }),
      ),
      vision: optional(flag({ description: "Images are understood." })),
      pdf: optional(flag({ description: "PDF files are understood." })),
    },
  );

const route = section(
  { description: "One way to reach the model." },
  {
    upstream: plainName("The upstream, as named under `upstreams`."),
    model: optional(
      text({
        description: "The model's name at the upstream. Default: the name here.",
        pattern: "[\\x21-\\x7e]{1,256}",
        rule: "a name of 1 to 256 visible ASCII characters without blanks",
      }),
    ),
    weight: optional(
      positive({
        description: "Share of the traffic among routes of the same priority.",
        default: DEFAULTS.routeWeight,
        max: 1_000_000,
      }),
    ),
    priority: optional(
      count({ description: "Lower is tried first.", default: DEFAULTS.routePriority, min: 0, max: 100 }),
    ),
    answers_as: optional(
      listOf(
        {
          description:
            "Names under which the upstream may answer for it, beside its own name and dated versions of it; " +
            '"*": any name.',
          max: LIMITS.answersAsMax,
          examples: [["big-1-turbo"]],
        },
        text({
          description: "A model's name in the upstream's answers.",
          pattern: "[\\x21-\\x7e]{1,256}",
          rule: "a name of 1 to 256 visible ASCII characters without blanks",
        }),
      ),
    ),
    cost: optional(
      price(
        "What the upstream charges you; prices cost, margin and what you absorb. Default: the model's price. " +
          "It must have each tool, option and tier of the price (0 where it costs nothing), and steps where the price has them ([]: none).",
      ),
    ),
    capabilities: optional(capabilities("What this route can do, where it differs from the model's.")),
  },
);

export const plans = mapOf(
  {
    description: "Names under which models are listed; an account has a base plan, a card brings one.",
    min: 1,
    max: LIMITS.plansMax,
    names: PLAIN_NAMES,
    examples: [{ free: {}, pro: {} }],
  },
  nothing({ description: "A plan has no settings of its own." }),
);

const tokens = (description: string, rest: { default?: number } = {}) =>
  count({ description, ...rest, min: 1, max: LIMITS.tokensMax });

export const models = mapOf(
  { description: "The catalog, by the exact names that clients send.", max: LIMITS.modelsMax, names: MODEL_NAMES },
  section(
    { description: "One model." },
    {
      plans: listOf(
        { description: "Plans that list it.", min: 1, max: LIMITS.plansMax },
        plainName("A plan, as named under `plans`."),
      ),
      price: price("What clients pay, before their group's multiplier."),
      context_tokens: tokens("Input and output together, at most; bounds the hold for the input."),
      max_output_tokens: optional(
        tokens("Largest output limit the upstream takes; at most context_tokens.", {
          default: DEFAULTS.maxOutputTokens,
        }),
      ),
      default_output_tokens: optional(
        tokens("Output limit of whole replies that name none; such streams are held in steps of it.", {
          default: DEFAULTS.defaultOutputTokens,
        }),
      ),
      input_bytes_per_token: optional(
        count({
          description: "Text bytes that count as one token in the input estimate.",
          default: DEFAULTS.inputBytesPerToken,
          min: 1,
          max: 16,
        }),
      ),
      media_tokens: optional(
        section(
          { description: "Bounds of what an image or a file is held at, in tokens; between them its size decides." },
          {
            image: optional(
              count({
                description: "The least per image.",
                default: DEFAULTS.imageTokens,
                min: 0,
                max: LIMITS.tokensMax,
              }),
            ),
            image_max: optional(
              count({
                description:
                  "The most per image; with `image` the same, its size does not matter. Default: the context.",
                min: 0,
                max: LIMITS.tokensMax,
              }),
            ),
            file: optional(
              count({
                description: "The least per file.",
                default: DEFAULTS.fileTokens,
                min: 0,
                max: LIMITS.tokensMax,
              }),
            ),
            file_max: optional(
              count({ description: "The most per file. Default: the context.", min: 0, max: LIMITS.tokensMax }),
            ),
          },
        ),
      ),
      tool_calls: optional(toolCalls()),
      capabilities: optional(capabilities("What the model can do, on all its routes unless they say otherwise.")),
      routes: listOf({ description: "Ways to reach it.", min: 1, max: LIMITS.routesPerModelMax }, route),
      rules: rules("in requests for this model"),
    },
  ),
);

export const groups = mapOf(
  { description: "What a key may use and who pays.", max: LIMITS.groupsMax, names: PLAIN_NAMES },
  section(
    { description: "One group." },
    {
      kind: oneOf({ description: "time_card: paid by cards; pay_per_use: paid from the balance." }, [
        "time_card",
        "pay_per_use",
      ]),
      fallback: optional(
        oneOf(
          {
            description:
              "Of a time_card group. none: without a card that covers it a request fails; money: then the balance pays.",
            default: "none",
          },
          ["none", "money"],
        ),
      ),
      models: listOf(
        { description: "Models it serves.", min: 1, max: LIMITS.modelsPerGroupMax, examples: [["big-1", "small-*"]] },
        text({
          description: "A model's name, or the beginning of names followed by *.",
          pattern: "(?:[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}|(?:[A-Za-z0-9][A-Za-z0-9._:/-]{0,126})?\\*)",
          rule: "the name of a model, or the beginning of names followed by one * at the end",
        }),
      ),
      multiplier: optional(factor({ description: "Every price is multiplied by it.", default: DEFAULTS.multiplier })),
      limits: optional(
        section(
          { description: "Per account in this group, or per key. A limit that is not named does not exist." },
          {
            requests_per_minute: optional(
              count({ description: "Requests per minute.", min: 1, max: LIMITS.perMinuteMax }),
            ),
            tokens_per_minute: optional(
              count({
                description:
                  "Tokens per minute, input and output. A request takes the estimate of its input when it comes, and what it has really used when it ends: what is above the limit is waited for then, by the next ones. So requests that run at once may use more in a minute; `concurrency` bounds how many do.",
                min: 1,
                max: LIMITS.perMinuteMax,
              }),
            ),
            concurrency: optional(
              count({
                description: "Requests in flight. An account has at most 1,000 of them over all its groups and keys.",
                default: DEFAULTS.concurrency,
                min: 1,
                max: LIMITS.concurrencyMax,
              }),
            ),
            per_key: optional(
              flag({ description: "Each key has the limits for itself.", default: DEFAULTS.limitsPerKey }),
            ),
          },
        ),
      ),
      rules: rules("in requests of this group's keys"),
    },
  ),
);

export const cards = mapOf(
  { description: "Kinds of time cards that codes can be issued for.", max: LIMITS.cardsMax, names: PLAIN_NAMES },
  section(
    { description: "One kind of card." },
    {
      plan: plainName("The plan it brings."),
      group: plainName("The time_card group whose requests it pays."),
      lasts: duration({ description: "How long it runs once redeemed.", examples: ["1d", "7d", "30d"] }),
      starts: optional(
        oneOf({ description: "When it starts to run.", default: DEFAULTS.cardStarts }, [
          "at_redemption",
          "after_previous",
        ]),
      ),
      quota: optional(
        section(
          { description: "What it is good for; without: no quota." },
          { spend: usd({ description: "US dollars that may be spent on it.", examples: ["5"] }) },
        ),
      ),
    },
  ),
);
