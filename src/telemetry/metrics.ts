/**
 * Metrics for Prometheus; docs/metrics.md lists them. Counters, histograms and gauges that change with each request use
 * series.ts; prom-client has the other gauges and the process's own metrics.
 */
import { collectDefaultMetrics, Gauge, type Metric, type OpenMetricsContentType, Registry } from "prom-client";
import { type Group, groupServes, type Model, type Route } from "../values/catalog.ts";
import { NOTICE_KINDS } from "../values/settings.ts";
import { LabelledCounter, LabelledGauge, LabelledHistogram, type Labels } from "./series.ts";
import { type SeriesSnapshot, written } from "./series-snapshot.ts";

/** First token: from 0.05 seconds to two minutes. */
const FIRST_TOKEN_BUCKETS_S = [0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 8, 13, 20, 30, 60, 120];
const DURATION_BUCKETS_S = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1200];
const PACE_BUCKETS = [1, 2, 5, 10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500, 1_000];
const ADDED_BUCKETS_S = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5];
const QUEUE_WAIT_BUCKETS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Kinds of implausible counts (settle/meter.ts). */
const SURPRISES = ["output_above_max", "output_above_limit", "input_above_context"] as const;

const NANO = 1e-9;

/** Names in a configuration that are used as labels. */
interface LabelSources {
  readonly upstreams: ReadonlyMap<string, unknown>;
  readonly catalog: {
    readonly models: ReadonlyMap<string, Pick<Model, "name"> & { readonly routes: readonly Pick<Route, "upstream">[] }>;
    readonly groups: ReadonlyMap<string, Pick<Group, "name" | "models">>;
  };
}

/** All metrics of one process with their values; can be sent to another process (summed-metrics.ts). */
export type MetricsSnapshot = (SeriesSnapshot | PlainMetric)[];

/** A metric of prom-client. */
export type PlainMetric = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>[number];

export interface MetricsPage {
  readonly contentType: string;
  readonly body: string;
}

/**
 * How a gauge is combined on a page of several processes: the worst value for a state that each of them sees, else the
 * sum.
 */
function aggregatorOf(name: string): "min" | "max" | "sum" | "first" {
  if (addedOnce(name)) return "first";
  if (/(_up|_healthy|_success)$/.test(name)) return "min";
  return /pressure|breaker|older|oldest|stopped|ratio|^ledger_|^accounts_|^entitlements_/.test(name) ? "max" : "sum";
}

/** Whether all processes do it together, so that the parent's number is the number of all. */
function addedOnce(name: string): boolean {
  return name === "config_reloads_total" || name === "config_generation";
}

/** How a worker ended: by itself in an orderly way, with an error, by a signal, or killed because it did not answer. */
export type WorkerEnd = (typeof WORKER_ENDS)[number];
const WORKER_ENDS = ["drained", "failed", "killed", "stuck"] as const;

export type Metrics = ReturnType<typeof createMetrics>;

const REASONING_REFUSED =
  "Attempts that an upstream refused because of reasoning from another source, and whether they were retried without it.";

const KEPT_QUESTIONS = "Questions to upstreams about answers that they keep, by what they said.";

/** Functions that make metrics with the program's prefix. */
function makersOn(registers: Registry<OpenMetricsContentType>[]) {
  const labelled: (LabelledCounter<string> | LabelledGauge<string> | LabelledHistogram<string>)[] = [];
  const registered = <M extends object>(metric: M): M => {
    labelled.push(metric as unknown as LabelledGauge<string>);
    return metric;
  };
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[]) => {
    const aggregator = addedOnce(name) ? "first" : "sum";
    return registered(new LabelledCounter({ name: `tollgate_${name}`, help, labelNames, aggregator }));
  };
  const gauge = <T extends string>(name: string, help: string, labelNames: readonly T[] = []) =>
    new Gauge({ name: `tollgate_${name}`, help, labelNames, registers, aggregator: aggregatorOf(name) });
  /** A gauge that is computed when the page is written. */
  const readGauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: `tollgate_${name}`,
      help,
      registers,
      aggregator: aggregatorOf(name),
      collect() {
        this.set(read());
      },
    });
  const movedGauge = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    registered(new LabelledGauge({ name: `tollgate_${name}`, help, labelNames, aggregator: aggregatorOf(name) }));
  const histogram = <T extends string>(name: string, help: string, labelNames: readonly T[], buckets: number[]) =>
    registered(new LabelledHistogram({ name: `tollgate_${name}`, help, labelNames, buckets }));
  return { counter, gauge, readGauge, movedGauge, histogram, labelled };
}

/** Makes the registry of one process and every metric in it. */
export function createMetrics() {
  // Exemplars exist in OpenMetrics only. This registry has the metrics and their values; the registries that write
  // pages are below.
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // Gauges with a counter's name, which promtool rejects. Each has a sibling metric with a label per type.
  for (const kind of ["handles", "requests", "resources"]) registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  const { counter, gauge, readGauge, movedGauge, histogram, labelled } = makersOn(registers);

  let holdsNano = 0n;
  const request = ["protocol", "model", "group"] as const;
  const metrics = {
    requests: counter("requests_total", "Requests answered, by status and cause of refusal.", [
      ...request,
      "status",
      "cause",
    ]),
    requestDuration: histogram(
      "request_duration_seconds",
      "From the headers of a request to the end of its answer.",
      request,
      DURATION_BUCKETS_S,
    ),
    firstToken: histogram(
      "time_to_first_token_seconds",
      "Streams: from the last byte of a request in to its first semantic event out.",
      [...request, "upstream"],
      FIRST_TOKEN_BUCKETS_S,
    ),
    upstreamFirstToken: histogram(
      "upstream_time_to_first_token_seconds",
      "Streams: from an attempt sent upstream to its first semantic event.",
      ["upstream", "model"],
      FIRST_TOKEN_BUCKETS_S,
    ),
    addedLatency: histogram(
      "added_latency_seconds",
      "Time that the gateway itself adds, by phase.",
      ["phase"],
      ADDED_BUCKETS_S,
    ),
    outputPace: histogram(
      "output_tokens_per_second",
      "Output tokens over the time from the first semantic event to the end of a stream.",
      ["model", "upstream"],
      PACE_BUCKETS,
    ),
    tokens: counter("tokens_total", "Tokens billed, by kind.", ["group", "model", "kind"]),
    surprisingCounts: counter(
      "surprising_counts_total",
      "Replies whose upstream counted more than the catalog or the request allows, by kind; charged all the same.",
      ["upstream", "model", "kind"],
    ),
    unusualHolds: counter(
      "unusual_holds_total",
      "Requests admitted with a lowered output limit (clamped) or with a hold for the worst case (dearest), by kind.",
      ["group", "kind"],
    ),
    leftStreams: counter("left_streams_total", "Streams whose client disconnected, by who counted their tokens.", [
      "upstream",
      "model",
      "counted",
    ]),
    keptQuestions: counter("kept_answer_questions_total", KEPT_QUESTIONS, ["upstream", "outcome"]),
    leftUnpaid: counter(
      "left_before_output_total",
      "Requests whose client disconnected before anything was delivered, by who pays.",
      ["group", "paid_by"],
    ),
    spend: counter("spend_usd_total", "US dollars charged to clients.", ["group", "model"]),
    cost: counter(
      "cost_usd_total",
      "US dollars that upstreams are expected to bill, at the routes' cost prices, absorbed attempts included.",
      ["group", "model", "upstream"],
    ),
    absorbed: counter("absorbed_usd_total", "US dollars of upstream cost that no client pays for, by cause.", [
      "group",
      "upstream",
      "cause",
    ]),
    unpaidToolCalls: counter(
      "unpaid_tool_calls_total",
      "Calls of hosted tools that an upstream counts and no client pays for, by reason.",
      ["model", "upstream", "reason"],
    ),
    holds: readGauge(
      "holds_usd",
      "US dollars held for requests that this process is answering.",
      () => Number(holdsNano) * NANO,
    ),
    attempts: counter("upstream_attempts_total", "Attempts at upstreams, by outcome.", ["upstream", "outcome"]),
    reasoningRefused: counter("reasoning_refused_total", REASONING_REFUSED, ["upstream", "retried"]),
    otherModel: counter(
      "other_model_answers_total",
      "Answers that name a different model than the one that was asked for.",
      ["upstream", "model"],
    ),
    upstreamHealthy: gauge("upstream_healthy", "1 while an upstream is in rotation, 0 while it is ejected.", [
      "upstream",
    ]),
    upstreamEjections: counter("upstream_ejections_total", "Times that an upstream was ejected, by reason.", [
      "upstream",
      "reason",
    ]),
    queued: gauge("queued", "Requests that wait for a slot at an upstream.", ["upstream"]),
    queueWait: histogram(
      "queue_wait_seconds",
      "Time that requests have waited for a slot at an upstream.",
      ["upstream"],
      QUEUE_WAIT_BUCKETS_S,
    ),
    inFlight: movedGauge("in_flight", "Requests that are being answered.", ["protocol"]),
    pressure: gauge("pressure", "How close this process is to its limits: 0 is idle, 1 is full."),
    shed: counter("shed_total", "Requests and connections refused under pressure, by point in the request path.", [
      "point",
    ]),
    rateLimited: counter("rate_limited_total", "Requests refused by a limit.", ["group", "limit"]),
    badKeys: counter("bad_keys_total", "Requests whose key was refused.", []),
    codeFailures: counter("code_failures_total", "Codes that could not be redeemed, and attempts while blocked.", [
      "outcome",
    ]),
    adminRefusals: counter("admin_refusals_total", "Requests that the admin listener refused, by reason.", ["reason"]),
    streamEnds: counter("stream_ends_total", "Streams ended, by reason.", ["protocol", "reason"]),
    holdExtensions: counter("hold_extensions_total", "Attempts to raise the hold of a running stream, by outcome.", [
      "group",
      "outcome",
    ]),
    translationLoss: counter("translation_loss_total", "Request fields that were left out.", ["from", "to", "field"]),
    journalUnsettled: gauge("journal_unsettled", "Charges that the store has not acknowledged yet."),
    journalOldest: gauge("journal_oldest_seconds", "Age of the oldest charge that the store has not acknowledged."),
    journalFill: gauge("journal_fill_ratio", "Share of journal.bytes_max in use; at 0.8 new requests are refused."),
    deadLetters: gauge("dead_letters", "Charges that the store did not take; an operator must look at each."),
    unverifiedCharges: gauge(
      "unverified_charges",
      "Charges and operators' writes that verification cannot check or resend because their account is broken or missing.",
    ),
    unrecordedCharges: gauge("unrecorded_charges", "Charges that neither the journal nor the store has yet."),
    restoredCharges: counter("restored_charges_total", "Charges that the store had lost and that were restored.", []),
    ledgerUnbalanced: gauge("ledger_unbalanced_accounts", "Accounts whose figures do not follow from their ledger."),
    accountsLow: gauge("accounts_low", "Accounts that were topped up and now have less than 1 US dollar available."),
    entitlementsExpiring: gauge("entitlements_expiring", "Running time cards that expire within the given time.", [
      "within",
    ]),
    noticesDelivered: counter("notices_delivered_total", "Notices that the receiver accepted, by kind.", ["kind"]),
    noticeFailures: counter("notice_failures_total", "Failed attempts to deliver a notice, by cause.", ["cause"]),
    noticesLost: counter("notices_lost_total", "Notices that were lost and will not be delivered, by cause.", [
      "cause",
    ]),
    noticesOldest: gauge("notices_oldest_seconds", "Age of the oldest notice that is known to wait."),
    noticesStopped: gauge("notices_stopped", "1 while no notices are sent because the receiver answered 410."),
    storeSeconds: histogram("store_seconds", "Time of a store operation.", ["operation"], ADDED_BUCKETS_S),
    storeOlder: gauge("store_older", "1 while the store lacks data and waits for the operator."),
    storeUp: gauge("store_up", "1 while the store answers."),
    storeBreakerOpen: gauge("store_breaker_open", "1 while requests are refused because the store is down or slow."),
    logDropped: counter("log_lines_dropped_total", "Log lines that were dropped because nothing read the log.", []),
    configReloads: counter("config_reloads_total", "Configuration reloads, by result.", ["result"]),
    configLastReloadSuccess: gauge(
      "config_last_reload_success",
      "1 when the last reload of the configuration was accepted.",
    ),
    configGeneration: gauge(
      "config_generation",
      "Number of the newest configuration: 1 at the start; each accepted reload adds 1.",
    ),
    buildInfo: gauge("build_info", "Always 1; the labels name the program and the configuration's generation.", [
      "version",
      "build",
      "generation",
    ]),
    workerUp: gauge("worker_up", "1 while a worker serves clients and answers its parent.", ["worker"]),
    workerGeneration: gauge(
      "worker_config_generation",
      "The configuration that a worker serves, as in tollgate_config_generation; 0 while it serves no requests.",
      ["worker"],
    ),
    workerEnds: counter("worker_ends_total", "Workers that have ended and were restarted, by cause.", ["cause"]),
    /** Sets the metrics of the program and its configuration; only one series of build_info exists at a time. */
    measureBuild({ version, build }: { readonly version: string; readonly build: string }, generation: number) {
      metrics.configGeneration.set(generation);
      metrics.buildInfo.reset();
      metrics.buildInfo.set({ version, build, generation: String(generation) }, 1);
    },
    /** Sets the gauges of the workers, one entry per worker; a gateway of one process is its own worker 1. */
    measureWorkers(states: readonly { readonly worker: number; readonly up: boolean; readonly generation: number }[]) {
      for (const { worker, up, generation } of states) {
        metrics.workerUp.set({ worker: String(worker) }, up ? 1 : 0);
        metrics.workerGeneration.set({ worker: String(worker) }, generation);
      }
    },
    /** Adds nano-dollars to a counter of dollars. */
    addUsd<T extends string>(target: LabelledCounter<T>, labels: Labels<T>, nano: bigint): void {
      if (nano > 0n) target.inc(labels, Number(nano) * NANO);
    },
    /**
     * Initializes to 0 the series of configured names that alerts use, so that the first event shows as an increase.
     */
    expectConfigured({ upstreams, catalog: { models, groups } }: LabelSources): void {
      for (const upstream of upstreams.keys())
        for (const outcome of ["ok", "upstream_forbidden"]) metrics.attempts.inc({ upstream, outcome }, 0);
      for (const { name: model, routes } of models.values()) {
        const serving = [...groups.values()].filter((group) => groupServes(group, model));
        for (const { upstream } of routes) {
          metrics.otherModel.inc({ upstream, model }, 0);
          for (const kind of SURPRISES) metrics.surprisingCounts.inc({ upstream, model, kind }, 0);
          for (const { name: group } of serving)
            metrics.absorbed.inc({ group, upstream, cause: "unpaid_tool_calls" }, 0);
        }
      }
    },
    /** Changes the gauge of holds by nano-dollars; kept as an integer, so that it returns to exactly 0. */
    moveHolds(nano: bigint): void {
      holdsNano += nano;
    },
    /** For a page that several processes share. */
    snapshot: async (): Promise<MetricsSnapshot> => [
      ...(await registry.getMetricsAsJSON()),
      ...labelled.map((metric) => metric.snapshot()),
    ],
    /**
     * The page that Prometheus scrapes. @param accept the request's `accept` header; OpenMetrics only if it asks for
     * it.
     */
    async page(accept = ""): Promise<MetricsPage> {
      const isOpen = accept.includes("application/openmetrics-text");
      const form = isOpen ? open : text;
      const plain = await form.metrics();
      const series = labelled.map((metric) => metric.snapshot(isOpen));
      const body = isOpen
        ? `${await written(plain.slice(0, -OPEN_END.length), series, true)}${OPEN_END}`
        : await written(plain, series, false);
      return { contentType: form.contentType, body };
    },
  };
  const text = new Registry();
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name) as Metric<string> | undefined;
    if (metric === undefined) continue;
    text.registerMetric(metric);
    open.registerMetric(underOpenName(metric));
  }
  // The configuration at the start was accepted.
  metrics.configLastReloadSuccess.set(1);
  showAtZero(metrics);
  return metrics;
}

/** The end marker of an OpenMetrics page. */
const OPEN_END = "# EOF\n";

/**
 * A metric as OpenMetrics writes it: the family name of a counter is without `_total`. prom-client would rename the
 * counter itself, on every page and in every snapshot from then on.
 */
function underOpenName(metric: Metric<string>): Metric<string> {
  const named = (metric as unknown as { readonly name: string }).name;
  const name = named.replace(/_total$/, "");
  if (name === named) return metric;
  return { name, get: async () => ({ ...(await metric.get()), name }) } as unknown as Metric<string>;
}

/** Initializes series to 0: a rate shows the first event only if the series existed before it. */
function showAtZero(metrics: Metrics): void {
  for (const result of ["accepted", "refused"]) metrics.configReloads.inc({ result }, 0);
  for (const point of ["accept", "headers", "room", "body", "upstream"]) metrics.shed.inc({ point }, 0);
  for (const cause of WORKER_ENDS) metrics.workerEnds.inc({ cause }, 0);
  for (const outcome of ["failed", "blocked"]) metrics.codeFailures.inc({ outcome }, 0);
  for (const kind of NOTICE_KINDS) metrics.noticesDelivered.inc({ kind }, 0);
  for (const cause of ["answer", "timeout", "connection"]) metrics.noticeFailures.inc({ cause }, 0);
  for (const cause of ["dropped", "given_up"]) metrics.noticesLost.inc({ cause }, 0);
}
