/** The schema of one upstream: address, credential, timeouts, queue, health, TLS. */

import { PROTOCOL_NAMES } from "../../values/protocol.ts";
import { formatDuration } from "../compile/units.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import { promptCache } from "./prompt-cache.ts";
import { HEADER_NAMES, rules } from "./rules.ts";
import { tls } from "./tls.ts";
import { count, duration, flag, listOf, mapOf, oneOf, optional, secret, section, text } from "./words.ts";

/** An optional duration with a default. */
export const after = (description: string, ms: number, maxMs?: number) =>
  optional(duration({ description, default: formatDuration(ms), maxMs }));

const queue = section(
  {
    description:
      "Queue of requests that wait while max_concurrency requests are in flight. Fair between accounts and between their keys.",
  },
  {
    max: optional(
      count({
        description: "Requests that may wait, per process. 0: none.",
        default: DEFAULTS.queueMax,
        min: 0,
        max: LIMITS.queueMax,
      }),
    ),
    wait: after("How long a request may wait before it gets 429.", DEFAULTS.queueWaitMs, LIMITS.queueWaitMsMax),
  },
);

const health = section(
  {
    description:
      "When the upstream is ejected, so that requests skip it for a while. The last route of a model is never skipped.",
  },
  {
    failures: optional(
      count({
        description: "Number of failures in a row.",
        default: DEFAULTS.healthFailures,
        min: 1,
        max: LIMITS.healthCountMax,
      }),
    ),
    failure_percent: optional(
      count({
        description: "Or percentage of failures within the window.",
        default: DEFAULTS.healthFailurePercent,
        min: 1,
        max: 100,
      }),
    ),
    outcomes_min: optional(
      count({
        description: "Outcomes that the window must have before failure_percent applies.",
        default: DEFAULTS.healthOutcomesMin,
        min: 1,
        max: LIMITS.healthCountMax,
      }),
    ),
    window: after("Time over which failure_percent is measured.", DEFAULTS.healthWindowMs),
    cool_down: after(
      "How long it is ejected at first. Doubles each time it is ejected again.",
      DEFAULTS.healthCoolDownMs,
    ),
    cool_down_max: after(
      "The longest ejection. Also bounds the upstream's own retry-after.",
      DEFAULTS.healthCoolDownMaxMs,
    ),
  },
);

export const upstream = section(
  { description: "One upstream." },
  {
    protocol: oneOf({ description: "The protocol that the upstream speaks." }, PROTOCOL_NAMES),
    base_url: text({
      description: "Base URL up to and including /v1, without credentials or a query.",
      pattern: "https?://.+",
      rule: "an http:// or https:// URL",
      examples: ["https://models.example/v1"],
    }),
    api_key: optional(
      secret({ description: "The upstream's API key.", examples: ["$" + "{EAST_KEY}", "file:/run/east-key"] }),
    ),
    headers: optional(
      mapOf(
        {
          description: "Headers that are added to every request, after those that Tollgate sets.",
          max: LIMITS.headersPerUpstreamMax,
          names: HEADER_NAMES,
        },
        secret({ description: "The header's value." }),
      ),
    ),
    timeouts: optional(
      section(
        { description: "Timeouts of requests to the upstream." },
        {
          connect: after("Time to open a usable connection.", DEFAULTS.timeoutConnectMs),
          first_byte: after(
            "For streams: time from sending the request to the first body byte.",
            DEFAULTS.timeoutFirstByteMs,
          ),
          whole: after(
            "For whole replies: time from sending the request to the last body byte.",
            DEFAULTS.timeoutWholeMs,
          ),
          idle: after("Longest silence inside a body.", DEFAULTS.timeoutIdleMs),
          total: after("Time for the whole request, including retries.", DEFAULTS.timeoutTotalMs),
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
          description:
            "When a client disconnects in mid-stream. abort: the upstream request is ended; drain: it is read to its end for the upstream's token count.",
          default: DEFAULTS.onClientGone,
        },
        ["abort", "drain"],
      ),
    ),
    client_gone_grace: after(
      "With abort: how long the upstream is still read for its token count if the model may have produced hidden reasoning. 0s: not at all.",
      DEFAULTS.clientGoneGraceMs,
      LIMITS.clientGoneGraceMsMax,
    ),
    unknown_members: optional(
      oneOf(
        {
          description:
            "Request members that no protocol lists. drop: they are removed, and the answer names them; pass: they are sent.",
          default: DEFAULTS.unknownMembers,
        },
        ["drop", "pass"],
      ),
    ),
    pass_members: optional(
      listOf(
        {
          description:
            "Request members that no protocol lists and that are sent to this upstream. Write a nested one with a dot.",
          max: LIMITS.passedMembersMax,
          examples: [["documents", "chat_template_kwargs.documents"]],
        },
        text({
          description: "The name of a member.",
          pattern: "[A-Za-z_$][A-Za-z0-9_$-]{0,63}(?:\\.[A-Za-z_$][A-Za-z0-9_$-]{0,63}){0,3}",
          rule: "a member's name, or up to four names with dots between them",
        }),
      ),
    ),
    prompt_cache: optional(promptCache({ default: DEFAULTS.promptCache })),
    stateful: optional(
      flag({
        description:
          "For responses upstreams: the upstream stores responses, and clients may refer to them (previous_response_id, GET, DELETE). An account can use only its own.",
        default: false,
      }),
    ),
    tls: optional(tls("base_url")),
    rules: rules("to requests to this upstream"),
  },
);
