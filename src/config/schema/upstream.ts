/** The schema of one model server: address, credential, patience, line, health, identity. */

import { PROTOCOL_NAMES } from "../../values/protocol.ts";
import { formatDuration } from "../compile/units.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import { promptCache } from "./prompt-cache.ts";
import { HEADER_NAMES, rules } from "./rules.ts";
import { tls } from "./tls.ts";
import { count, duration, flag, listOf, mapOf, oneOf, optional, secret, section, text } from "./words.ts";

/** A duration that has a default. */
export const after = (description: string, ms: number) =>
  optional(duration({ description, default: formatDuration(ms) }));

const queue = section(
  { description: "The line in front of it while max_concurrency are in flight; fair between accounts and keys." },
  {
    max: optional(
      count({
        description: "Requests that may wait, per process; 0: none does.",
        default: DEFAULTS.queueMax,
        min: 0,
        max: LIMITS.queueMax,
      }),
    ),
    wait: after("How long each may wait before it gets 429.", DEFAULTS.queueWaitMs),
  },
);

const health = section(
  { description: "When requests pass it over for a while; never the last route of a model." },
  {
    failures: optional(
      count({
        description: "So many failures in a row.",
        default: DEFAULTS.healthFailures,
        min: 1,
        max: LIMITS.healthCountMax,
      }),
    ),
    failure_percent: optional(
      count({
        description: "Or this share of failures, in percent, within the window.",
        default: DEFAULTS.healthFailurePercent,
        min: 1,
        max: 100,
      }),
    ),
    outcomes_min: optional(
      count({
        description: "Outcomes within the window before the share counts.",
        default: DEFAULTS.healthOutcomesMin,
        min: 1,
        max: LIMITS.healthCountMax,
      }),
    ),
    window: after("How far back the share looks.", DEFAULTS.healthWindowMs),
    cool_down: after("How long it is passed over at first; doubles with each repetition.", DEFAULTS.healthCoolDownMs),
    cool_down_max: after("The longest; bounds its retry-after too.", DEFAULTS.healthCoolDownMaxMs),
  },
);

export const upstream = section(
  { description: "A model server." },
  {
    protocol: oneOf({ description: "The protocol it speaks." }, PROTOCOL_NAMES),
    base_url: text({
      description: "Where it is, up to and including /v1; no credentials, no query.",
      pattern: "https?://.+",
      rule: "an http:// or https:// URL",
      examples: ["https://models.example/v1"],
    }),
    api_key: optional(secret({ description: "Its credential.", examples: ["$" + "{EAST_KEY}", "file:/run/east-key"] })),
    headers: optional(
      mapOf(
        {
          description: "Added to every request to it, after ours.",
          max: LIMITS.headersPerUpstreamMax,
          names: HEADER_NAMES,
        },
        secret({ description: "The header's value." }),
      ),
    ),
    timeouts: optional(
      section(
        { description: "How long it may take." },
        {
          connect: after("To a usable connection.", DEFAULTS.timeoutConnectMs),
          first_byte: after("Streams: from the request sent to the first body byte.", DEFAULTS.timeoutFirstByteMs),
          whole: after("Whole replies: from the request sent to the last body byte.", DEFAULTS.timeoutWholeMs),
          idle: after("Longest silence inside a body.", DEFAULTS.timeoutIdleMs),
          total: after("A request's whole life, retries included.", DEFAULTS.timeoutTotalMs),
        },
      ),
    ),
    max_concurrency: optional(
      count({
        description: "Requests in flight, per process.",
        default: DEFAULTS.upstreamConcurrency,
        min: 1,
        max: LIMITS.concurrencyMax,
      }),
    ),
    queue: optional(queue),
    health: optional(health),
    on_client_gone: optional(
      oneOf(
        {
          description: "A client left in mid-stream: stop the upstream, or read on to its end for its own token count.",
          default: DEFAULTS.onClientGone,
        },
        ["abort", "drain"],
      ),
    ),
    client_gone_grace: after(
      "With abort: the longest that it is read on for its count where its model may have thought out of sight.",
      DEFAULTS.clientGoneGraceMs,
    ),
    unknown_members: optional(
      oneOf(
        {
          description: "Members of a request that no protocol lists: left out and named in the answer, or passed on.",
          default: DEFAULTS.unknownMembers,
        },
        ["drop", "pass"],
      ),
    ),
    pass_members: optional(
      listOf(
        {
          description: "Members that no protocol lists and that this server gets; a nested one with a dot.",
          max: LIMITS.passedMembersMax,
          examples: [["documents", "chat_template_kwargs.documents"]],
        },
        text({
          description: "A member's name.",
          pattern: "[A-Za-z_$][A-Za-z0-9_$-]{0,63}(?:\\.[A-Za-z_$][A-Za-z0-9_$-]{0,63}){0,3}",
          rule: "a member's name, or up to four names with dots between them",
        }),
      ),
    ),
    prompt_cache: optional(promptCache({ default: DEFAULTS.promptCache })),
    stateful: optional(
      flag({
        description:
          "Responses only: it keeps responses that its clients may refer to (previous_response_id, GET, DELETE), each account its own.",
        default: false,
      }),
    ),
    tls: optional(tls("base_url")),
    rules: rules("to this server"),
  },
);
