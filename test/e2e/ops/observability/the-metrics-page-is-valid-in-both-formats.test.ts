/** The metrics page as checked by Prometheus' own tool, and its OpenMetrics form with exemplars. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { startCollector } from "../../../rig/otel-collector.ts";
import { startPrometheus } from "../../../rig/prometheus.ts";
import { ask } from "../../protocol/whole/asking.ts";
import { round, sightConfig, visitors } from "./mixed-traffic.ts";
import { ALERTS } from "./rule-files.ts";

test("promtool check metrics finds nothing on a page after mixed traffic", async (t) => {
  const here = await startGatewayHere({ config: sightConfig });
  t.after(() => here.close());
  await round(here, await visitors(here));
  const page = await fetch(`${here.adminUrl}/metrics`);
  assert.match(page.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const said = execFileSync("promtool", ["check", "metrics"], { input: await page.text(), stdio: "pipe" });
  assert.equal(String(said), "");
});

test("each counter whose increase an alert uses is at 0 before the first request", async (t) => {
  const here = await startGatewayHere({ config: sightConfig });
  t.after(() => here.close());
  const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
  const asked = ALERTS.flatMap(({ expr }) => [...expr.matchAll(/increase\((\w+)(?:\{([^}]*)\})?\[/g)]);
  assert.ok(asked.length > 5);
  for (const [, name, matchers = ""] of asked) {
    const labels = [...matchers.matchAll(/\w+="[^"]*"/g)].map(([label]) => label);
    const shown = page.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    const series = shown.filter((line) => labels.every((label) => line.includes(label)));
    assert.ok(series.length > 0 && series.every((line) => line.endsWith(" 0")), `${name}{${matchers}}: ${series}`);
  }
});

test("a first token links to its trace: Prometheus keeps the exemplar", async (t) => {
  const collector = await startCollector();
  const traces = `traces: {endpoint: "${collector.endpoint}/v1/traces", sample: 1}\n`;
  const here = await startGatewayHere({ config: (places) => testConfig(places) + traces });
  t.after(async () => {
    await here.close();
    await collector.stop();
  });
  const prometheus = await startPrometheus(new URL(here.adminUrl).host, { scrapeMs: 200 });
  t.after(() => prometheus.stop());
  const fromS = Date.now() / 1_000 - 60;
  const { key } = await here.account();
  const reply = await ask(here, "chat", key, { stream: true });
  await reply.text();
  const { trace } = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  const open = await fetch(`${here.adminUrl}/metrics`, { headers: { accept: "application/openmetrics-text" } });
  const body = await open.text();
  assert.ok(body.includes(`# {trace_id="${trace}"}`));
  assert.ok(body.endsWith("# EOF\n"));
  await prometheus.until("tollgate_time_to_first_token_seconds_count");
  const kept = await prometheus.exemplars(
    "tollgate_time_to_first_token_seconds_bucket",
    fromS,
    Date.now() / 1_000 + 60,
  );
  assert.ok(kept > 0);
});
