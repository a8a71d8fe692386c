/** How full the gateway itself is: loop, memory, requests, journal, store. */
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
          description: "By the worst view of any instance. At 0 new requests get 503; running streams do not notice.",
          unit: UNIT.count,
          queries: [{ expr: "min(tollgate_store_up)", legend: "store" }],
          thresholds: { warn: 1, alarm: 0.5, below: true },
        },
        {
          kind: "stat",
          title: "Event-loop delay, 99th percentile (s)",
          description: "How long a byte may wait for the process. Above 0.05 s clients feel it.",
          unit: UNIT.seconds,
          queries: [{ expr: "max(nodejs_eventloop_lag_p99_seconds)", legend: "lag" }],
          thresholds: { warn: 0.05, alarm: 0.25 },
        },
        {
          kind: "stat",
          title: "Charges on their way to the store",
          description: "Written in the journal, not yet acknowledged. Normally near 0.",
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
          description: "At 0 the settings before it are still in force; the log has file, line and reason.",
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
          description: "Resident memory and heap in use. It follows the number of streams, not their length.",
          unit: UNIT.bytes,
          queries: [
            { expr: "sum by (instance) (process_resident_memory_bytes)", legend: "{{instance}} resident" },
            { expr: "sum by (instance) (nodejs_heap_size_used_bytes)", legend: "{{instance}} heap" },
          ],
        },
        {
          kind: "timeseries",
          title: "Open descriptors",
          description: "Clients, upstreams, store and journal. A slope that never falls is a leak.",
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
            "1 is a full process. From 0.8 on the busiest accounts are refused, later everybody: docs/overload.md.",
          unit: UNIT.share,
          queries: [{ expr: "max by (instance) (tollgate_pressure)", legend: "{{instance}}" }],
          thresholds: { warn: 0.8, alarm: 0.95 },
        },
        {
          kind: "timeseries",
          title: "Refused under pressure (1/s)",
          description: "By the point of a request's path; the first ones cost least.",
          unit: UNIT.perSecond,
          queries: [{ expr: "sum by (point) (rate(tollgate_shed_total[$__rate_interval]))", legend: "{{point}}" }],
        },
        {
          kind: "timeseries",
          title: "Requests waiting for an upstream",
          description: "The short fair queue in front of upstreams at their max_concurrency.",
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
            "A gateway of one process is its own worker. While others serve, one that restarts is no outage.",
          unit: UNIT.count,
          queries: [{ expr: "sum by (instance) (tollgate_worker_up)", legend: "{{instance}}" }],
        },
        {
          kind: "timeseries",
          title: "Which configuration does each worker serve by?",
          description:
            "1 is the one of the start, each good reload adds 1. Lines that stay apart mean two prices at once.",
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
            "`killed` is often for want of memory, `failed` has a line in the log, `stuck` no longer answered.",
          unit: UNIT.count,
          queries: [
            { expr: "sum by (cause) (increase(tollgate_worker_ends_total[$__rate_interval]))", legend: "{{cause}}" },
          ],
        },
        {
          kind: "timeseries",
          title: "Reloads of the configuration, by result",
          description: "`refused` means that the settings before it stay in force; the log has file, line and reason.",
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
          description: "They drain within seconds of the store's return; nothing is lost meanwhile.",
          unit: UNIT.count,
          queries: [{ expr: "sum by (instance) (tollgate_journal_unsettled)", legend: "{{instance}}" }],
          thresholds: { warn: 100, alarm: 1000 },
        },
        {
          kind: "timeseries",
          title: "Age of the oldest charge that the store has not acknowledged (s)",
          description: "Above a minute something keeps charges from the store: docs/runbook.md.",
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
          description: "`admit` is on every request's way; `settle` is on none's.",
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
          description: "An open breaker refuses at once instead of letting requests wait for a slow store.",
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
