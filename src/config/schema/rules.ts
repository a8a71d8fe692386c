/** The schema of `rules`: changes to requests on the way upstream. */
import { PROTOCOL_NAMES } from "../../values/protocol.ts";
import { LIMITS } from "../defaults.ts";
import { anything, flag, listOf, mapOf, oneOf, optional, secret, section, text } from "./words.ts";

const PATH = "[A-Za-z0-9_-]{1,64}(?:\\.[A-Za-z0-9_-]{1,64}){0,7}";
const PATH_RULE =
  "a parameter as the upstream spells it, with dots for nested ones: up to 8 parts of letters, digits, _ and -";
const PATHS = { pattern: `^${PATH}$`, rule: `is ${PATH_RULE}` };

const HEADER = "[A-Za-z][A-Za-z0-9-]{0,63}";

/** Names of request headers; case does not matter. */
export const HEADER_NAMES = { pattern: `^${HEADER}$`, rule: "is a header name: letters, digits and -" };

const assignments = (description: string, example: unknown) =>
  mapOf(
    { description, min: 1, max: LIMITS.membersPerRuleMax, names: PATHS, examples: [example] },
    anything({ description: "Any value. The upstream decides which values are valid." }),
  );

const RULES = ["drop", "set", "default", "system", "header", "strip_attribution"] as const;

const rule = section(
  { description: `One rule, with exactly one of ${RULES.join(", ")}.` },
  {
    protocol: optional(
      oneOf({ description: "Applies the rule only to upstreams of this protocol. Default: to all." }, PROTOCOL_NAMES),
    ),
    drop: optional(
      listOf(
        {
          description: "Parameters that are removed from the request.",
          min: 1,
          max: LIMITS.membersPerRuleMax,
          examples: [["logit_bias", "metadata.user_id"]],
        },
        text({ description: "A parameter.", pattern: PATH, rule: PATH_RULE }),
      ),
    ),
    set: optional(assignments("Parameters that override the client's.", { temperature: 0.2 })),
    default: optional(assignments("Parameters for requests that lack them or have null.", { reasoning_effort: "low" })),
    system: optional(
      section(
        { description: "Text that is added to the system text, in the form of the upstream's protocol." },
        {
          text: text({ description: "The text.", pattern: "[\\s\\S]*\\S[\\s\\S]*", rule: "text that is not blank" }),
          at: optional(
            oneOf({ description: "Before (start) or after (end) the client's own system text.", default: "end" }, [
              "start",
              "end",
            ]),
          ),
        },
      ),
    ),
    header: optional(
      section(
        { description: "Changes to the request headers: first headers are removed, then headers are added." },
        {
          add: optional(
            mapOf(
              {
                description: "Headers that are added. Each replaces any header of the same name.",
                min: 1,
                max: LIMITS.headersPerRuleMax,
                names: HEADER_NAMES,
              },
              secret({ description: "The header's value." }),
            ),
          ),
          remove: optional(
            listOf(
              { description: "Headers that are removed.", min: 1, max: LIMITS.headersPerRuleMax },
              text({ description: "A header.", pattern: HEADER, rule: "a header name: letters, digits and -" }),
            ),
          ),
        },
      ),
    ),
    strip_attribution: optional(
      flag({
        description:
          "For messages upstreams: removes the x-anthropic-billing-header line from the system text, because it changes with " +
          "each request. Translated requests never have it.",
      }),
    ),
  },
);

export const rules = (whose: string) =>
  optional(
    listOf(
      {
        description: `Changes ${whose}. Each rule has exactly one of ${RULES.join(", ")}. The group's rules are applied first, then the model's, then the upstream's.`,
        default: [],
        max: LIMITS.rulesMax,
      },
      rule,
    ),
  );
