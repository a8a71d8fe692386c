/**
 * src/telemetry/metrics.ts: how each gauge of several processes is combined, and which series exist before the first
 * event.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { figuresOf, liveMetrics } from "../../../src/telemetry/live-figures.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { isSeries } from "../../../src/telemetry/series-snapshot.ts";
import { RetiredMetrics, summedSnapshot } from "../../../src/telemetry/summed-metrics.ts";

/** Gauges that are combined to the worst value of any process. All others are summed. */
const WORST: Readonly<Record<string, readonly string[]>> = {
  min: ["upstream_healthy", "store_up", "config_last_reload_success", "worker_up"],
  max: [
    ...["pressure", "journal_oldest_seconds", "journal_fill_ratio", "ledger_unbalanced_accounts", "accounts_low"],
    ...["entitlements_expiring", "notices_oldest_seconds", "notices_stopped", "store_older", "store_breaker_open"],
    "worker_config_generation",
  ],
  // All processes do this together.
  first: ["config_reloads_total", "config_generation"],
};

test("each gauge of several processes is combined to the worst value or to the sum", async () => {
  const own = (await createMetrics().snapshot()).filter(({ name }) => name.startsWith("tollgate_"));
  const byKind = Object.groupBy(own, ({ aggregator }) => aggregator);
  for (const [kind, names] of Object.entries(WORST)) {
    const found = (byKind[kind as keyof typeof byKind] ?? []).map(({ name }) => name.slice("tollgate_".length));
    assert.deepEqual(found.sort(), [...names].sort(), kind);
  }
  const others = own.filter(({ aggregator }) => !(aggregator in WORST));
  assert.deepEqual([...new Set(others.map(({ aggregator }) => aggregator))], ["sum"]);
});

test("series for alerts and rates exist before the first event", async () => {
  const metrics = createMetrics();
  metrics.expectConfigured({
    upstreams: new Map([["up-1", {}]]),
    catalog: {
      models: new Map([["big-1", { name: "big-1", routes: [{ upstream: "up-1" }, { upstream: "up-2" }] }]]),
      groups: new Map([
        ["all", { name: "all", models: ["big-*"] }],
        ["small", { name: "small", models: ["small-1"] }],
      ]),
    },
  });
  const { body } = await metrics.page();
  for (const series of [
    'upstream_attempts_total{upstream="up-1",outcome="ok"}',
    'upstream_attempts_total{upstream="up-1",outcome="upstream_forbidden"}',
    'surprising_counts_total{upstream="up-1",model="big-1",kind="input_above_context"}',
    'other_model_answers_total{upstream="up-1",model="big-1"}',
    'other_model_answers_total{upstream="up-2",model="big-1"}',
    'absorbed_usd_total{group="all",upstream="up-2",cause="unpaid_tool_calls"}',
    'code_failures_total{outcome="failed"}',
    'code_failures_total{outcome="blocked"}',
    'config_reloads_total{result="refused"}',
    ...["accept", "headers", "room", "body", "upstream"].map((point) => `shed_total{point="${point}"}`),
    'worker_ends_total{cause="stuck"}',
    'notice_failures_total{cause="answer"}',
    'notices_lost_total{cause="given_up"}',
    "bad_keys_total",
    "restored_charges_total",
  ])
    assert.ok(body.includes(`\ntollgate_${series} 0\n`), series);
  assert.ok(body.includes("\ntollgate_config_last_reload_success 1\n"), "the configuration of the start was accepted");
  assert.doesNotMatch(body, /group="small"/, "the group has no model with such a route");
});

test("there is one build series, whose generation is updated", async () => {
  const metrics = createMetrics();
  for (const generation of [1, 2]) metrics.measureBuild({ version: "1.0.0", build: "abc" }, generation);
  const { body } = await metrics.page();
  const lines = body.split("\n").filter((line) => line.startsWith("tollgate_build_info"));
  assert.deepEqual(lines, ['tollgate_build_info{version="1.0.0",build="abc",generation="2"} 1']);
});

test("the live figures contain everything that is read from them, of one process and of several", async () => {
  const metrics = createMetrics();
  const labels = { protocol: "chat", model: "big-1", group: "money", status: "200", upstream: "up-1" };
  metrics.requests.inc({ ...labels, cause: "none" }, 5);
  metrics.requests.inc({ ...labels, cause: "insufficient_balance" }, 2);
  metrics.queued.set({ upstream: "up-1" }, 3);
  metrics.inFlight.inc({ protocol: "chat" }, 4);
  metrics.journalUnsettled.set(6);
  metrics.journalFill.set(0.25);
  metrics.addUsd(metrics.spend, { group: "money", model: "big-1" }, 2_000_000_000n);
  const snapshot = liveMetrics(await metrics.snapshot());
  const both = await summedSnapshot([snapshot, snapshot]);
  for (const [figures, times] of [
    [figuresOf(snapshot), 1],
    [figuresOf(both), 2],
  ] as const) {
    assert.equal(figures.requests, 7 * times);
    assert.deepEqual([...figures.refusals], [["insufficient_balance", 2 * times]]);
    assert.deepEqual([figures.queued, figures.inFlight, figures.unsettled], [3 * times, 4 * times, 6 * times]);
    assert.equal(figures.journalFill, 0.25);
    assert.deepEqual([...figures.spendUsd], [["money", 2 * times]]);
  }
});

test("the counts of a process that ends during a summation are not lost", async () => {
  const snapshotOf = async (count: number) => {
    const metrics = createMetrics();
    metrics.badKeys.inc({}, count);
    return metrics.snapshot();
  };
  const [first, second, third] = [await snapshotOf(1), await snapshotOf(10), await snapshotOf(100)];
  const retired = new RetiredMetrics();
  retired.add(first);
  retired.add(second);
  // The first two are being summed now.
  retired.add(third);
  const countOf = async () => {
    const sum = await summedSnapshot(retired.snapshots);
    const found = sum.find(({ name }) => name === "tollgate_bad_keys_total");
    return found && isSeries(found) ? found.numbers[0] : undefined;
  };
  assert.equal(await countOf(), 111);
  while (retired.snapshots.length > 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(await countOf(), 111);
});
