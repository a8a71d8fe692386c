/** What clients see: how many requests, how they are answered, why they are refused, how fast the first token is. */
import { type Dashboard, UNIT } from "./panels.ts";

const ASKED = '{group=~"$group",model=~"$model"}';
const SERVED = '{group=~"$group",model=~"$model",upstream=~"$upstream"}';
/** Causes that are faults of upstreams or of the gateway. */
const FAILED =
  'cause=~"upstream_unavailable|upstream_timeout|upstream_invalid|upstream_forbidden|internal|store_.*|journal_full|overloaded"';

const quantile = (q: number, metric: string, by: string, labels: string) =>
  `histogram_quantile(${q}, sum by (${by}, le) (rate(${metric}_bucket${labels}[$__rate_interval])))`;

export const TRAFFIC: Dashboard = {
  uid: "tollgate-traffic",
  title: "Tollgate / Traffic",
  description: "What clients ask for, how they are answered, and how fast.",
  rows: [
    {
      title: "At a glance",
      panels: [
        {
          kind: "stat",
          title: "Requests per second",
          description: "All answered requests, including refusals.",
          unit: UNIT.perSecond,
          queries: [{ expr: `sum(rate(tollgate_requests_total${ASKED}[$__rate_interval]))`, legend: "requests" }],
        },
        {
          kind: "stat",
          title: "Share of requests that failed upstream or here",
          description:
            "Refusals that a client cannot avoid: upstreams that are unreachable, slow, invalid or forbid access, and the gateway's own 5xx. Errors of clients are not included.",
          unit: UNIT.share,
          queries: [
            {
              expr: `(sum(rate(tollgate_requests_total{group=~"$group",model=~"$model",${FAILED}}[$__rate_interval])) or vector(0)) / sum(rate(tollgate_requests_total${ASKED}[$__rate_interval]))`,
              legend: "failed",
            },
          ],
          thresholds: { warn: 0.01, alarm: 0.05 },
        },
        {
          kind: "stat",
          title: "Time to first token, 95th percentile (s)",
          description:
            "From the last byte of a request to the first text, reasoning, refusal or tool call that is sent to the client. Heartbeats and opening events do not count.",
          unit: UNIT.seconds,
          queries: [
            {
              expr: `histogram_quantile(0.95, sum by (le) (rate(tollgate_time_to_first_token_seconds_bucket${SERVED}[$__rate_interval])))`,
              legend: "p95",
            },
          ],
          thresholds: { warn: 3, alarm: 8 },
        },
        {
          kind: "stat",
          title: "Requests being answered",
          description: "Streams and whole replies in progress, over all instances.",
          unit: UNIT.count,
          queries: [{ expr: "sum(tollgate_in_flight)", legend: "in flight" }],
        },
        {
          kind: "stat",
          title: "Tokens per second",
          description: "Input and output together, as billed.",
          unit: UNIT.tokensPerSecond,
          queries: [{ expr: `sum(rate(tollgate_tokens_total${ASKED}[$__rate_interval]))`, legend: "tokens" }],
        },
        {
          kind: "stat",
          title: "Refused keys per second",
          description:
            "Missing, malformed, unknown or revoked keys. A sudden rise means that a client lost its configuration or that somebody guesses keys.",
          unit: UNIT.perSecond,
          queries: [{ expr: "sum(rate(tollgate_bad_keys_total[$__rate_interval]))", legend: "bad keys" }],
          thresholds: { warn: 1, alarm: 20 },
        },
      ],
    },
    {
      title: "Answers",
      panels: [
        {
          kind: "timeseries",
          title: "Requests by protocol (per second)",
          description: "`side` stands for all endpoints other than the model paths: model lists, token counts, usage.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: `sum by (protocol) (rate(tollgate_requests_total${ASKED}[$__rate_interval]))`,
              legend: "{{protocol}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "How are requests answered? (per second, by status)",
          description:
            "499: the client disconnected before it had an answer. docs/errors.md has every status and cause.",
          unit: UNIT.perSecond,
          queries: [
            { expr: `sum by (status) (rate(tollgate_requests_total${ASKED}[$__rate_interval]))`, legend: "{{status}}" },
          ],
        },
        {
          kind: "timeseries",
          title: "Why are requests refused? (per second, by cause)",
          description:
            "The client's error message contains the same cause, with its remedy. docs/errors.md explains each.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: `sum by (cause, group) (rate(tollgate_requests_total{group=~"$group",model=~"$model",cause!="none"}[$__rate_interval]))`,
              legend: "{{cause}} ({{group}})",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Which limits refuse requests? (per second)",
          description:
            "429s by group and limit: requests, tokens, concurrency. Raise the group's limit, or ask the client to slow down.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: `sum by (group, limit) (rate(tollgate_rate_limited_total{group=~"$group"}[$__rate_interval]))`,
              legend: "{{group}}: {{limit}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "How do streams end? (per second, by reason)",
          description:
            "`complete` is normal; `client_gone`: the client disconnected; all others were cut but ended as the protocol requires.",
          unit: UNIT.perSecond,
          queries: [
            { expr: "sum by (reason) (rate(tollgate_stream_ends_total[$__rate_interval]))", legend: "{{reason}}" },
          ],
        },
        {
          kind: "timeseries",
          title: "Which request fields are left out? (per second)",
          description:
            "Each was reported to the client in `x-tollgate-translation`. `unlisted` stands for members that no protocol lists.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: "sum by (from, to, field) (rate(tollgate_translation_loss_total[$__rate_interval]))",
              legend: "{{from}} to {{to}}: {{field}}",
            },
          ],
        },
      ],
    },
    {
      title: "Speed",
      panels: [
        {
          kind: "timeseries",
          title: "Time to first token by model (s, median and 95th)",
          description: "The time that a person waits. Click a diamond to see the trace of one request.",
          unit: UNIT.seconds,
          queries: [
            { expr: quantile(0.5, "tollgate_time_to_first_token_seconds", "model", SERVED), legend: "{{model}} p50" },
            { expr: quantile(0.95, "tollgate_time_to_first_token_seconds", "model", SERVED), legend: "{{model}} p95" },
          ],
          thresholds: { warn: 3, alarm: 8 },
        },
        {
          kind: "timeseries",
          title: "Time to first token by upstream (s, 95th)",
          description: "The same by upstream: shows one slow server among several.",
          unit: UNIT.seconds,
          queries: [
            {
              expr: quantile(0.95, "tollgate_time_to_first_token_seconds", "upstream", SERVED),
              legend: "{{upstream}}",
            },
          ],
          thresholds: { warn: 3, alarm: 8 },
        },
        {
          kind: "timeseries",
          title: "How long do requests take? (s, median and 95th)",
          description:
            "From the headers of the request to the end of the answer. Long answers take long on any server.",
          unit: UNIT.seconds,
          queries: [
            { expr: quantile(0.5, "tollgate_request_duration_seconds", "model", ASKED), legend: "{{model}} p50" },
            { expr: quantile(0.95, "tollgate_request_duration_seconds", "model", ASKED), legend: "{{model}} p95" },
          ],
        },
        {
          kind: "timeseries",
          title: "How fast do models write? (output tokens per second, median)",
          description: "Output tokens over the time from the first semantic event to the end of a stream.",
          unit: UNIT.tokensPerSecond,
          queries: [
            {
              expr: quantile(
                0.5,
                "tollgate_output_tokens_per_second",
                "model, upstream",
                '{model=~"$model",upstream=~"$upstream"}',
              ),
              legend: "{{model}} at {{upstream}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Tokens by kind (per second)",
          description:
            "A falling share of `cached_input` means that prompt caches fail: clients pay more for the same text.",
          unit: UNIT.tokensPerSecond,
          queries: [
            { expr: `sum by (kind) (rate(tollgate_tokens_total${ASKED}[$__rate_interval]))`, legend: "{{kind}}" },
          ],
        },
        {
          kind: "timeseries",
          title: "What does the gateway itself add? (s, 99th)",
          description:
            "`admit`: until the store has decided. `convert`: until the upstream's body is ready. `relay`: the end of an answer waits for its charge to be durable.",
          unit: UNIT.seconds,
          queries: [{ expr: quantile(0.99, "tollgate_added_latency_seconds", "phase", ""), legend: "{{phase}}" }],
          thresholds: { warn: 0.02, alarm: 0.2 },
        },
      ],
    },
  ],
};
