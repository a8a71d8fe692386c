/** The part of the schema that says what is changed on the way upstream. */
import { PROTOCOL_NAMES } from "../../values/protocol.ts";
import { LIMITS } from "../defaults.ts";
import { anything, flag, listOf, mapOf, oneOf, optional, secret, section, text } from "./words.ts";

const PATH = "[A-Za-z0-9_-]{1,64}(?:\\.[A-Za-z0-9_-]{1,64}){0,7}";
const PATH_RULE =
  "a parameter as the upstream spells it, with dots into mappings: up to 8 parts of letters, digits, _ and -";
const PATHS = { pattern: `^${PATH}$`, rule: `is ${PATH_RULE}` };

const HEADER = "[A-Za-z][A-Za-z0-9-]{0,63}";

/** Names of request headers; they have no case. */
export const HEADER_NAMES = { pattern: `^${HEADER}$`, rule: "is a header name: letters, digits and -" };

const assignments = (description: string, example: unknown) =>
  mapOf(
    { description, min: 1, max: LIMITS.membersPerRuleMax, names: PATHS, examples: [example] },
    anything({ description: "Any value; what it may be is the upstream's to say." }),
  );

const rule = section(
  { description: "One rule: exactly one of drop, set, default, system, header, strip_attribution." },
  {
    protocol: optional(oneOf({ description: "Only for upstreams that speak it. Default: for all." }, PROTOCOL_NAMES)),
    drop: optional(
      listOf(
        {
          description: "Parameters that the upstream is not sent.",
          min: 1,
          max: LIMITS.membersPerRuleMax,
          examples: [["logit_bias", "metadata.user_id"]],
        },
        text({ description: "A parameter.", pattern: PATH, rule: PATH_RULE }),
      ),
    ),
    set: optional(assignments("Parameters that override the client's.", { temperature: 0.2 })),
    default: optional(
      assignments("Parameters for requests that do not have them (or as null).", { reasoning_effort: "low" }),
    ),
    system: optional(
      section(
        { description: "Text that is added to the system text, in the upstream protocol's own way." },
        {
          text: text({ description: "The text.", pattern: "[\\s\\S]*\\S[\\s\\S]*", rule: "a text that is not blank" }),
          at: optional(
            oneOf({ description: "Before or behind the client's own system text.", default: "end" }, ["start", "end"]),
          ),
        },
      ),
    ),
    header: optional(
      section(
        { description: "Request headers to the upstream: what is removed, then what is added." },
        {
          add: optional(
            mapOf(
              {
                description: "Headers that are sent in place of any of the same name.",
                min: 1,
                max: LIMITS.headersPerRuleMax,
                names: HEADER_NAMES,
              },
              secret({ description: "The header's value." }),
            ),
          ),
          remove: optional(
            listOf(
              { description: "Headers that are not sent.", min: 1, max: LIMITS.headersPerRuleMax },
              text({ description: "A header.", pattern: HEADER, rule: "a header name: letters, digits and -" }),
            ),
          ),
        },
      ),
    ),
    strip_attribution: optional(
      flag({
        description:
          "messages upstreams: takes the x-anthropic-billing-header line, which changes with each request, out of the " +
          "system text. Translated requests never have it.",
      }),
    ),
  },
);

export const rules = (whose: string) =>
  optional(
    listOf(
      {
        description: `What is changed on the way upstream ${whose}. The group's rules come first, then the model's, then the upstream's.`,
        default: [],
        max: LIMITS.rulesMax,
      },
      rule,
    ),
  );
