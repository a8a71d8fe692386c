/** The load of the gateway itself: event loop, memory, requests, journal, store. */
import { type Dashboard, UNIT } from "./panels.ts";

export const SATURATION: Dashboard = {
  uid: "tollgate-saturation",
  title: "Tollgate / Saturation",
  description: "What runs out first: event loop, memory, descriptors, queue, journal, store.",
  rows: [
    {
      title: "At a glance",
      panels: [
        {
          kind: "stat",
          title: "Instances that answer",
          description: "Targets that Prometheus can scrape.",
          unit: UNIT.count,
          queries: [{ expr: 'sum(up{job="tollgate"})', legend: "up" }],
          thresholds: { warn: 1, alarm: 1, below: true },
        },
        {
          kind: "stat",
          title: "Does the store answer? (1 yes, 0 no)",
          description: "The worst value of any instance. At 0 new requests get 503; running streams are not affected.",
          unit: UNIT.count,
          queries: [{ expr: "min(tollgate_store_up)", legend: "store" }],
          thresholds: { warn: 1, alarm: 0.5, below: true },
        },
        {
          kind: "stat",
          title: "Event-loop delay, 99th percentile (s)",
          description: "How long data may wait for the process. Above 0.05 s clients notice it.",
          unit: UNIT.seconds,
          queries: [{ expr: "max(nodejs_eventloop_lag_p99_seconds)", legend: "lag" }],
          thresholds: { warn: 0.05, alarm: 0.25 },
        },
        {
          kind: "stat",
          title: "Charges on their way to the store",
          description: "Written to the journal but not yet acknowledged by the store. Normally near 0.",
          unit: UNIT.count,
          queries: [{ expr: "sum(tollgate_journal_unsettled)", legend: "unsettled" }],
          thresholds: { warn: 100, alarm: 1000 },
        },
        {
          kind: "stat",
          title: "Journal in use",
          description: "Share of journal.bytes_max; at 0.8 new requests are refused with 503.",
          unit: UNIT.share,
          queries: [{ expr: "max(tollgate_journal_fill_ratio)", legend: "fill" }],
          thresholds: { warn: 0.5, alarm: 0.7 },
        },
        {
          kind: "stat",
          title: "Did the last reload of the configuration succeed? (1 yes, 0 no)",
          description: "At 0 the previous settings are still in force; the log has file, line and reason.",
          unit: UNIT.count,
          queries: [{ expr: "min(tollgate_config_last_reload_success)", legend: "reload" }],
          thresholds: { warn: 1, alarm: 0.5, below: true },
        },
      ],
    },
    {
      title: "The process",
      panels: [
        {
          kind: "timeseries",
          title: "CPU used (cores)",
          description: "One event loop can use little more than one core; beyond that run more workers.",
          unit: UNIT.count,
          queries: [
            { expr: "sum by (instance) (rate(process_cpu_seconds_total[$__rate_interval]))", legend: "{{instance}}" },
          ],
          thresholds: { warn: 0.7, alarm: 0.9 },
        },
        {
          kind: "timeseries",
          title: "Event-loop delay (s)",
          description: "Mean and 99th percentile.",
          unit: UNIT.seconds,
          queries: [
            { expr: "max by (instance) (nodejs_eventloop_lag_mean_seconds)", legend: "{{instance}} mean" },
            { expr: "max by (instance) (nodejs_eventloop_lag_p99_seconds)", legend: "{{instance}} p99" },
          ],
          thresholds: { warn: 0.05, alarm: 0.25 },
        },
        {
          kind: "timeseries",
          title: "Memory (bytes)",
          description: "Resident memory and heap in use. They depend on the number of streams, not on their length.",
          unit: UNIT.bytes,
          queries: [
            { expr: "sum by (instance) (process_resident_memory_bytes)", legend: "{{instance}} resident" },
            { expr: "sum by (instance) (nodejs_heap_size_used_bytes)", legend: "{{instance}} heap" },
          ],
        },
        {
          kind: "timeseries",
          title: "Open descriptors",
          description: "Clients, upstreams, store and journal. A curve that only rises is a leak.",
          unit: UNIT.count,
          queries: [
            { expr: "sum by (instance) (process_open_fds)", legend: "{{instance}} open" },
            { expr: "sum by (instance) (process_max_fds)", legend: "{{instance}} limit" },
          ],
        },
        {
          kind: "timeseries",
          title: "Requests being answered, by protocol",
          description: "Streams count until their last byte.",
          unit: UNIT.count,
          queries: [{ expr: "sum by (protocol) (tollgate_in_flight)", legend: "{{protocol}}" }],
        },
        {
          kind: "timeseries",
          title: "Pressure",
          description:
            "1 is a full process. From 0.8 on the busiest accounts are refused, later all clients: docs/overload.md.",
          unit: UNIT.share,
          queries: [{ expr: "max by (instance) (tollgate_pressure)", legend: "{{instance}}" }],
          thresholds: { warn: 0.8, alarm: 0.95 },
        },
        {
          kind: "timeseries",
          title: "Refused under pressure (1/s)",
          description: "By the point in a request's path; refusals at the first points are the cheapest.",
          unit: UNIT.perSecond,
          queries: [{ expr: "sum by (point) (rate(tollgate_shed_total[$__rate_interval]))", legend: "{{point}}" }],
        },
        {
          kind: "timeseries",
          title: "Requests waiting for an upstream",
          description: "Requests in the short fair queue of upstreams at their max_concurrency.",
          unit: UNIT.count,
          queries: [{ expr: "sum(tollgate_queued)", legend: "queued" }],
        },
      ],
    },
    {
      title: "Workers and configuration",
      panels: [
        {
          kind: "timeseries",
          title: "Workers that serve",
          description:
            "A gateway of one process counts as one worker. A worker that restarts is no outage while others serve.",
          unit: UNIT.count,
          queries: [{ expr: "sum by (instance) (tollgate_worker_up)", legend: "{{instance}}" }],
        },
        {
          kind: "timeseries",
          title: "Which configuration does each worker use?",
          description:
            "1 is the configuration of the start; each valid reload adds 1. If the lines stay apart, two prices are in use at once.",
          unit: UNIT.count,
          queries: [
            {
              expr: "max by (instance, worker) (tollgate_worker_config_generation)",
              legend: "{{instance}} worker {{worker}}",
            },
            { expr: "max by (instance) (tollgate_config_generation)", legend: "{{instance}} newest" },
          ],
        },
        {
          kind: "timeseries",
          title: "Workers that ended, by cause",
          description:
            "`killed` is often caused by lack of memory, `failed` has a line in the log, `stuck` no longer answered.",
          unit: UNIT.count,
          queries: [
            { expr: "sum by (cause) (increase(tollgate_worker_ends_total[$__rate_interval]))", legend: "{{cause}}" },
          ],
        },
        {
          kind: "timeseries",
          title: "Reloads of the configuration, by result",
          description: "`refused` means that the previous settings stay in force; the log has file, line and reason.",
          unit: UNIT.count,
          queries: [
            {
              expr: "sum by (result) (increase(tollgate_config_reloads_total[$__rate_interval]))",
              legend: "{{result}}",
            },
          ],
        },
      ],
    },
    {
      title: "Journal and store",
      panels: [
        {
          kind: "timeseries",
          title: "Charges on their way to the store",
          description: "They drain within seconds after the store is back; nothing is lost meanwhile.",
          unit: UNIT.count,
          queries: [{ expr: "sum by (instance) (tollgate_journal_unsettled)", legend: "{{instance}}" }],
          thresholds: { warn: 100, alarm: 1000 },
        },
        {
          kind: "timeseries",
          title: "Age of the oldest charge that the store has not acknowledged (s)",
          description: "Above a minute something prevents charges from reaching the store: docs/runbook.md.",
          unit: UNIT.seconds,
          queries: [{ expr: "max by (instance) (tollgate_journal_oldest_seconds)", legend: "{{instance}}" }],
          thresholds: { warn: 10, alarm: 60 },
        },
        {
          kind: "timeseries",
          title: "Journal in use",
          description: "Share of journal.bytes_max.",
          unit: UNIT.share,
          queries: [{ expr: "max by (instance) (tollgate_journal_fill_ratio)", legend: "{{instance}}" }],
          thresholds: { warn: 0.5, alarm: 0.7 },
        },
        {
          kind: "timeseries",
          title: "Store operations (s, 99th)",
          description: "Every request waits for `admit`; none waits for `settle`.",
          unit: UNIT.seconds,
          queries: [
            {
              expr: "histogram_quantile(0.99, sum by (operation, le) (rate(tollgate_store_seconds_bucket[$__rate_interval])))",
              legend: "{{operation}}",
            },
          ],
          thresholds: { warn: 0.01, alarm: 0.2 },
        },
        {
          kind: "timeseries",
          title: "Store operations per second",
          description: "One admission and one settlement for each request.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: "sum by (operation) (rate(tollgate_store_seconds_count[$__rate_interval]))",
              legend: "{{operation}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Is the store usable? (1 yes, 0 no), and is its breaker open? (1 yes)",
          description:
            "An open circuit breaker refuses requests at once instead of letting them wait for a slow store.",
          unit: UNIT.count,
          queries: [
            { expr: "min by (instance) (tollgate_store_up)", legend: "{{instance}} up" },
            { expr: "max by (instance) (tollgate_store_breaker_open)", legend: "{{instance}} breaker open" },
            { expr: "max by (instance) (tollgate_store_older)", legend: "{{instance}} waits for its operator" },
          ],
        },
      ],
    },
  ],
};
