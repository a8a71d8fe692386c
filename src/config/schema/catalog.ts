/** The schema of the catalog: plans, models, prices, groups and cards. */
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

/** How a chat upstream sends reasoning, and what it wants back of it. */
const chatThinking = {
  reasoning_content: optional(
    oneOf(
      {
        description:
          "Whether a chat upstream sends reasoning. off: no; read: yes; roundtrip: yes, and it also wants it back.",
      },
      ["off", "read", "roundtrip"],
    ),
  ),
  reasoning_field: optional(
    oneOf({ description: "Where a chat upstream expects its reasoning to be sent back. think_tags: in the text." }, [
      "reasoning_content",
      "reasoning",
      "thinking_parts",
      "think_tags",
    ]),
  ),
  thinking_switch: optional(
    oneOf({ description: "The request member that switches thinking on or off at a chat upstream." }, [
      "reasoning_effort",
      "thinking",
      "enable_thinking",
      "chat_template_kwargs",
      "reasoning",
    ]),
  ),
  thinking_in_text: optional(
    oneOf(
      {
        description:
          "Whether a chat upstream sends thinking inside the text. tags: between <think> and </think>; unopened: only </think> is there.",
      },
      ["none", "tags", "unopened"],
    ),
  ),
  call_signatures: optional(
    oneOf({ description: "Which thought signatures a chat upstream requires on tool calls (Gemini 3)." }, [
      "none",
      "google",
      "vertex",
    ]),
  ),
};

/**
 * Names as in `values/catalog.ts` (docs/translation-rules.md rule 6). A capability that is left out comes from the
 * model, then from the upstream's protocol.
 */
const capabilities = (description: string) =>
  section(
    { description },
    {
      sampling: optional(oneOf({ description: "none: temperature, top_p and top_k are dropped." }, ["full", "none"])),
      thinking: optional(
        oneOf({ description: "Which forms of thinking a messages upstream has." }, [
          "none",
          "budget",
          "adaptive",
          "always",
          "between",
          "both",
        ]),
      ),
      thinking_off: optional(
        oneOf(
          {
            description:
              "What happens when a client switches thinking off but the model has no switch. ignore: it thinks as little as it can; reject: 400.",
          },
          ["ignore", "reject"],
        ),
      ),
      progress_in_thinking: optional(flag({ description: "Text between tool calls is sent in thinking blocks." })),
      account_bound_thinking: optional(
        flag({ description: "Thinking blocks are valid only for the account of the upstream that made them." }),
      ),
      efforts: optional(
        listOf(
          {
            description: "Effort levels that the upstream knows. Empty: it has no such parameter.",
            max: EFFORTS.length,
          },
          oneOf({ description: "An effort level." }, EFFORTS),
        ),
      ),
      forced_tool_choice: optional(flag({ description: "A request can force the use of a tool." })),
      prefill: optional(flag({ description: "The conversation may end with the beginning of the answer." })),
      mid_system: optional(flag({ description: "System messages are allowed in the middle of the conversation." })),
      structured_outputs: optional(flag({ description: "Answers can be constrained to a JSON Schema." })),
      custom_tools: optional(flag({ description: "Free-form (custom) tools are supported." })),
      namespace_tools: optional(flag({ description: "Tools may be grouped in namespaces." })),
      ...chatThinking,
      max_tokens_field: optional(
        oneOf({ description: "Name of the output limit at a chat upstream." }, ["max_tokens", "max_completion_tokens"]),
      ),
      system_role: optional(oneOf({ description: "The system role of a chat upstream." }, ["system", "developer"])),
      openai_native: optional(flag({ description: "Members that only OpenAI knows may be sent." })),
      stop: optional(
        oneOf({ description: "Who applies stop sequences. native: the upstream; emulate: this gateway." }, [
          "native",
          "emulate",
        ]),
      ),
      stream_usage: optional(flag({ description: "A chat upstream accepts stream_options.include_usage." })),
      prompt_cache: optional(promptCache({})),
      prompt_cache_min_tokens: optional(
        count({
          description:
            "Shortest prompt prefix that a messages upstream caches, in tokens. No breakpoint is added to a shorter one.",
          min: 0,
          max: LIMITS.tokensMax,
        }),
      ),
      vision: optional(flag({ description: "The model accepts images." })),
      pdf: optional(flag({ description: "The model accepts PDF files." })),
    },
  );

const route = section(
  { description: "One way to reach the model." },
  {
    upstream: plainName("The upstream, as named under `upstreams`."),
    model: optional(
      text({
        description: "The model's name at the upstream. Default: its name in this file.",
        pattern: "[\\x21-\\x7e]{1,256}",
        rule: "a name of 1 to 256 visible ASCII characters, without spaces",
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
      count({
        description: "Routes with a lower number are tried first.",
        default: DEFAULTS.routePriority,
        min: 0,
        max: 100,
      }),
    ),
    answers_as: optional(
      listOf(
        {
          description:
            "Other model names that the upstream may report for it, besides its own name and dated versions of that; " +
            '"*": any name.',
          max: LIMITS.answersAsMax,
          examples: [["big-1-turbo"]],
        },
        text({
          description: "A model name in the upstream's answers.",
          pattern: "[\\x21-\\x7e]{1,256}",
          rule: "a name of 1 to 256 visible ASCII characters, without spaces",
        }),
      ),
    ),
    cost: optional(
      price(
        "What the upstream charges you; used for cost, margin and absorbed amounts. Default: the model's price. " +
          "It must have every tool, option and tier of the price (0 if free), and steps if the price has steps ([]: none).",
      ),
    ),
    capabilities: optional(capabilities("What this route can do, if it differs from the model's capabilities.")),
  },
);

export const plans = mapOf(
  {
    description:
      "Plans by name. A model lists the plans that it belongs to. An account has a base plan, and the plans of its running cards.",
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
  {
    description: "The model catalog, by the exact names that clients send.",
    max: LIMITS.modelsMax,
    names: MODEL_NAMES,
  },
  section(
    { description: "One model." },
    {
      plans: listOf(
        { description: "Plans that include it.", min: 1, max: LIMITS.plansMax },
        plainName("A plan, as named under `plans`."),
      ),
      price: price("What clients pay, before their group's multiplier."),
      context_tokens: tokens("Context length: input and output together. Bounds the hold for the input."),
      max_output_tokens: optional(
        tokens("Largest output limit that the upstream accepts. At most context_tokens.", {
          default: DEFAULTS.maxOutputTokens,
        }),
      ),
      default_output_tokens: optional(
        tokens(
          "Output limit of whole replies whose client names none. The hold of a stream whose client names none grows in steps of this size.",
          {
            default: DEFAULTS.defaultOutputTokens,
          },
        ),
      ),
      input_bytes_per_token: optional(
        count({
          description: "Bytes of text that count as one token in the input estimate.",
          default: DEFAULTS.inputBytesPerToken,
          min: 1,
          max: 16,
        }),
      ),
      media_tokens: optional(
        section(
          {
            description:
              "Minimum and maximum of the hold for an image or a file, in tokens. Between them, its size decides.",
          },
          {
            image: optional(
              count({
                description: "Minimum per image.",
                default: DEFAULTS.imageTokens,
                min: 0,
                max: LIMITS.tokensMax,
              }),
            ),
            image_max: optional(
              count({
                description:
                  "Maximum per image. If it equals `image`, the image's size does not matter. Default: the context.",
                min: 0,
                max: LIMITS.tokensMax,
              }),
            ),
            file: optional(
              count({
                description: "Minimum per file.",
                default: DEFAULTS.fileTokens,
                min: 0,
                max: LIMITS.tokensMax,
              }),
            ),
            file_max: optional(
              count({ description: "Maximum per file. Default: the context.", min: 0, max: LIMITS.tokensMax }),
            ),
          },
        ),
      ),
      tool_calls: optional(toolCalls()),
      capabilities: optional(capabilities("What the model can do. A route can override it.")),
      routes: listOf({ description: "Ways to reach the model.", min: 1, max: LIMITS.routesPerModelMax }, route),
      rules: rules("to requests for this model"),
    },
  ),
);

export const groups = mapOf(
  {
    description: "Groups by name. The group of a key decides which models it may use and who pays.",
    max: LIMITS.groupsMax,
    names: PLAIN_NAMES,
  },
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
              "For time_card groups, when no card covers a request. none: the request is refused; money: the balance pays.",
            default: "none",
          },
          ["none", "money"],
        ),
      ),
      models: listOf(
        {
          description: "Models that it serves.",
          min: 1,
          max: LIMITS.modelsPerGroupMax,
          examples: [["big-1", "small-*"]],
        },
        text({
          description: "A model name, or a prefix of model names followed by *.",
          pattern: "(?:[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}|(?:[A-Za-z0-9][A-Za-z0-9._:/-]{0,126})?\\*)",
          rule: "a model name, or a prefix of model names with one * at the end",
        }),
      ),
      multiplier: optional(factor({ description: "Factor for every price.", default: DEFAULTS.multiplier })),
      limits: optional(
        section(
          {
            description:
              "Limits per account in this group, or per key (per_key). A rate that is left out is unlimited.",
          },
          {
            requests_per_minute: optional(
              count({ description: "Requests per minute.", min: 1, max: LIMITS.perMinuteMax }),
            ),
            tokens_per_minute: optional(
              count({
                description:
                  "Tokens per minute, input and output. A request counts with its estimated input when it starts, and with its actual use when it ends. If that exceeds the limit, later requests wait longer. So requests that run at once may use more in one minute; `concurrency` bounds how many run.",
                min: 1,
                max: LIMITS.perMinuteMax,
              }),
            ),
            concurrency: optional(
              count({
                description: "Requests in flight. An account has at most 1,000 over all its groups and keys.",
                default: DEFAULTS.concurrency,
                min: 1,
                max: LIMITS.concurrencyMax,
              }),
            ),
            per_key: optional(
              flag({ description: "Whether each key has these limits for itself.", default: DEFAULTS.limitsPerKey }),
            ),
          },
        ),
      ),
      rules: rules("to requests of this group's keys"),
    },
  ),
);

export const cards = mapOf(
  { description: "Kinds of time cards. Codes are issued for them.", max: LIMITS.cardsMax, names: PLAIN_NAMES },
  section(
    { description: "One kind of card." },
    {
      plan: plainName("The plan that the account has while the card runs."),
      group: plainName("The time_card group whose requests it pays for."),
      lasts: duration({
        description: "How long the card runs.",
        maxMs: LIMITS.cardMsMax,
        examples: ["1d", "7d", "30d"],
      }),
      starts: optional(
        oneOf({ description: "When the card starts to run.", default: DEFAULTS.cardStarts }, [
          "at_redemption",
          "after_previous",
        ]),
      ),
      quota: optional(
        section(
          { description: "How much it covers. Default: no quota." },
          { spend: usd({ description: "US dollars that may be spent on it.", examples: ["5"] }) },
        ),
      ),
    },
  ),
);
