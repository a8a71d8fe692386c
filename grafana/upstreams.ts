/** The model servers: which are healthy, how attempts at them end, how fast the first token is. */
import { type Dashboard, UNIT } from "./panels.ts";

const HERE = '{upstream=~"$upstream"}';
const BAD = 'upstream=~"$upstream",outcome!~"ok|client_gone|draining"';

export const UPSTREAMS: Dashboard = {
  uid: "tollgate-upstreams",
  title: "Tollgate / Upstreams",
  description: "Health of model servers, attempts and retries, first token, error mix.",
  rows: [
    {
      title: "At a glance",
      panels: [
        {
          kind: "stat",
          title: "Upstreams out of rotation",
          description:
            "Ejected after failures, by any instance. They return when a probe succeeds, or when no request has arrived to be the probe for a long time.",
          unit: UNIT.count,
          queries: [
            { expr: `count(min by (upstream) (tollgate_upstream_healthy${HERE}) == 0) or vector(0)`, legend: "out" },
          ],
          thresholds: { warn: 1, alarm: 2 },
        },
        {
          kind: "stat",
          title: "Share of attempts that fail",
          description: "Share of single attempts; a retry on another upstream may still have answered the client.",
          unit: UNIT.share,
          queries: [
            {
              expr: `(sum(rate(tollgate_upstream_attempts_total{${BAD}}[$__rate_interval])) or vector(0)) / sum(rate(tollgate_upstream_attempts_total${HERE}[$__rate_interval]))`,
              legend: "failed",
            },
          ],
          thresholds: { warn: 0.02, alarm: 0.1 },
        },
        {
          kind: "stat",
          title: "Upstream time to first token, 95th percentile (s)",
          description: "The model server's own part: from sending the attempt to its first semantic event.",
          unit: UNIT.seconds,
          queries: [
            {
              expr: `histogram_quantile(0.95, sum by (le) (rate(tollgate_upstream_time_to_first_token_seconds_bucket{upstream=~"$upstream",model=~"$model"}[$__rate_interval])))`,
              legend: "p95",
            },
          ],
          thresholds: { warn: 3, alarm: 8 },
        },
        {
          kind: "stat",
          title: "Requests waiting for an upstream",
          description: "Requests in the short fair queue, because every route is at its max_concurrency.",
          unit: UNIT.count,
          queries: [{ expr: `sum(tollgate_queued${HERE})`, legend: "queued" }],
          thresholds: { warn: 5, alarm: 50 },
        },
      ],
    },
    {
      title: "Health",
      panels: [
        {
          kind: "timeseries",
          title: "Which upstreams are in rotation? (1 yes, 0 no)",
          description: "The worst value of any instance. The last route of a model is always tried.",
          unit: UNIT.count,
          queries: [{ expr: `min by (upstream) (tollgate_upstream_healthy${HERE})`, legend: "{{upstream}}" }],
          thresholds: { warn: 1, alarm: 0.5, below: true },
        },
        {
          kind: "timeseries",
          title: "Attempts by outcome (per second)",
          description:
            "`ok`, `client_gone` and `draining` (the gateway shut down) are not faults of the upstream; the others name what it did.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: `sum by (upstream, outcome) (rate(tollgate_upstream_attempts_total${HERE}[$__rate_interval]))`,
              legend: "{{upstream}}: {{outcome}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Share of attempts that fail, by upstream",
          description: "If `upstream_forbidden` is among them, the operator must check the credential.",
          unit: UNIT.share,
          queries: [
            {
              expr: `sum by (upstream) (rate(tollgate_upstream_attempts_total{${BAD}}[$__rate_interval])) / sum by (upstream) (rate(tollgate_upstream_attempts_total${HERE}[$__rate_interval]))`,
              legend: "{{upstream}}",
            },
          ],
          thresholds: { warn: 0.02, alarm: 0.1 },
        },
        {
          kind: "timeseries",
          title: "How often are upstreams taken out of rotation? (per hour, by reason)",
          description: "Failures in a row, a failure rate, a refused credential, or the server's own retry-after.",
          unit: UNIT.count,
          queries: [
            {
              expr: `3600 * sum by (upstream, reason) (rate(tollgate_upstream_ejections_total${HERE}[$__rate_interval]))`,
              legend: "{{upstream}}: {{reason}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Does another model answer than the one asked for? (per hour)",
          description: "By the name in the upstream's reply; clients pay for the model that they asked for.",
          unit: UNIT.count,
          queries: [
            {
              expr: '3600 * sum by (upstream, model) (rate(tollgate_other_model_answers_total{upstream=~"$upstream",model=~"$model"}[$__rate_interval]))',
              legend: "{{upstream}} for {{model}}",
            },
          ],
          thresholds: { warn: 1, alarm: 10 },
        },
        {
          kind: "timeseries",
          title: "Is reasoning of earlier turns refused? (attempts per hour)",
          description:
            "A signature or encrypted content of another account or conversation. `yes`: the attempt was repeated without it. A model whose routes use two accounts needs account_bound_thinking.",
          unit: UNIT.count,
          queries: [
            {
              expr: `3600 * sum by (upstream, retried) (rate(tollgate_reasoning_refused_total${HERE}[$__rate_interval]))`,
              legend: "{{upstream}}, retried: {{retried}}",
            },
          ],
          thresholds: { warn: 1, alarm: 20 },
        },
        {
          kind: "timeseries",
          title: "What do servers say about answers that they keep? (questions per hour)",
          description:
            "A stateful server is asked when a stream of it is silent, breaks off or takes too long. `unknown`: it gave no usable answer, and the stream is charged for what was shown.",
          unit: UNIT.count,
          queries: [
            {
              expr: `3600 * sum by (upstream, outcome) (rate(tollgate_kept_answer_questions_total${HERE}[$__rate_interval]))`,
              legend: "{{upstream}}, {{outcome}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Attempts per answered request",
          description: "1 without retries. The retry budget keeps it close to 1 even when everything fails.",
          unit: UNIT.count,
          queries: [
            {
              expr: 'sum(rate(tollgate_upstream_attempts_total[$__rate_interval])) / sum(rate(tollgate_requests_total{status="200",protocol!="side"}[$__rate_interval]))',
              legend: "attempts",
            },
          ],
          thresholds: { warn: 1.2, alarm: 2 },
        },
      ],
    },
    {
      title: "Speed and load",
      panels: [
        {
          kind: "timeseries",
          title: "Upstream time to first token (s, median and 95th)",
          description:
            "Compare with the client's time on the Traffic dashboard: the difference is retries, queue and the gateway.",
          unit: UNIT.seconds,
          queries: [
            {
              expr: `histogram_quantile(0.5, sum by (upstream, le) (rate(tollgate_upstream_time_to_first_token_seconds_bucket{upstream=~"$upstream",model=~"$model"}[$__rate_interval])))`,
              legend: "{{upstream}} p50",
            },
            {
              expr: `histogram_quantile(0.95, sum by (upstream, le) (rate(tollgate_upstream_time_to_first_token_seconds_bucket{upstream=~"$upstream",model=~"$model"}[$__rate_interval])))`,
              legend: "{{upstream}} p95",
            },
          ],
          thresholds: { warn: 3, alarm: 8 },
        },
        {
          kind: "timeseries",
          title: "How fast do upstreams write? (output tokens per second, median)",
          description: "If one upstream drops while the others stay, that server is overloaded.",
          unit: UNIT.tokensPerSecond,
          queries: [
            {
              expr: `histogram_quantile(0.5, sum by (upstream, le) (rate(tollgate_output_tokens_per_second_bucket{upstream=~"$upstream",model=~"$model"}[$__rate_interval])))`,
              legend: "{{upstream}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Requests waiting for an upstream",
          description: "A permanent queue needs a higher max_concurrency, another route, or lower limits.",
          unit: UNIT.count,
          queries: [{ expr: `sum by (upstream) (tollgate_queued${HERE})`, legend: "{{upstream}}" }],
          thresholds: { warn: 5, alarm: 50 },
        },
        {
          kind: "timeseries",
          title: "How long do requests wait in the queue? (s, 95th)",
          description:
            "Bounded by the queue's limit; after that the client gets 429 with a retry-after from observed service times.",
          unit: UNIT.seconds,
          queries: [
            {
              expr: `histogram_quantile(0.95, sum by (upstream, le) (rate(tollgate_queue_wait_seconds_bucket${HERE}[$__rate_interval])))`,
              legend: "{{upstream}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Absorbed by upstream (USD per hour)",
          description: "Cost of this server that no client pays for.",
          unit: UNIT.usd,
          queries: [
            {
              expr: `3600 * sum by (upstream) (rate(tollgate_absorbed_usd_total${HERE}[$__rate_interval]))`,
              legend: "{{upstream}}",
            },
          ],
        },
      ],
    },
  ],
};
