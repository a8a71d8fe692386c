/** Every panel's queries and every alert's expression, evaluated by a real Prometheus that scrapes a real gateway. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { DASHBOARDS, fileOf } from "../../../../grafana/generate.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startPrometheus } from "../../../rig/prometheus.ts";
import { pageOf } from "./drawn.ts";
import { round, sightConfig, visitors } from "./mixed-traffic.ts";
import { filledIn, panelsOf } from "./panels.ts";
import { ALERTS, RECORDINGS } from "./rule-files.ts";

const SCRAPE_MS = 200;
const ROUNDS = 3;
/** The folder for the pages with the drawn data; none by default. */
const { TOLLGATE_ARTEFACTS: ARTEFACTS } = process.env;

/** A comparison that filters returns nothing on a good day; with `bool` it returns 0 or 1 where there is data. */
function asked(expr: string): string {
  return expr.replaceAll(/(>=|<=|==|!=|>|<)(?= )/g, "$1 bool");
}

/**
 * The value of an expression. If a scrape has just failed, because this process was busy, the value after the next one.
 */
async function seen(prometheus: Awaited<ReturnType<typeof startPrometheus>>, expr: string) {
  const samples = await prometheus.query(expr);
  return samples.length > 0 ? samples : prometheus.until(expr).catch(() => []);
}

test("the dashboards' files match their sources, and each panel has a description", () => {
  for (const [name, dashboard] of DASHBOARDS) {
    const file = readFileSync(new URL(`../../../../grafana/dashboards/${name}.json`, import.meta.url), "utf8");
    assert.equal(file, fileOf(dashboard), `grafana/dashboards/${name}.json: run npm run dashboards`);
    for (const { title, description, fieldConfig } of panelsOf(name)) {
      assert.ok(title.length > 5 && (description?.length ?? 0) > 20, `${name}: ${title}`);
      assert.ok(fieldConfig?.defaults.unit && fieldConfig.defaults.thresholds?.steps.length, `${name}: ${title}`);
    }
  }
});

test("no panel is empty and no expression fails under mixed traffic; an alert fires and stops firing", async (t) => {
  const here = await startGatewayHere({ config: sightConfig });
  t.after(() => here.close());
  const prometheus = await startPrometheus(new URL(here.adminUrl).host, { scrapeMs: SCRAPE_MS });
  t.after(() => prometheus.stop());
  await prometheus.until('up{job="tollgate"} == 1');
  const fromS = Date.now() / 1_000;
  const who = await visitors(here);
  for (let index = 1; index <= ROUNDS; index++) {
    await round(here, who);
    // The next round's counts must be in another scrape; otherwise rates have nothing to compare.
    await prometheus.until("tollgate_requests_total", (samples) => sumOf(samples) >= here.log.filter(isRequest).length);
  }
  const toS = Date.now() / 1_000;

  const shown: string[] = [];
  const empty: string[] = [];
  for (const name of DASHBOARDS.keys()) {
    const panels = [];
    for (const { title, targets = [], type, fieldConfig } of panelsOf(name)) {
      const series = [];
      for (const { expr, legendFormat } of targets) {
        const samples = await seen(prometheus, filledIn(expr));
        if (samples.length === 0) empty.push(`${name}: "${title}": ${expr}`);
        shown.push(`${name} | ${title} | ${samples.length} series, ${samples[0]?.value.toPrecision(4)}`);
        const range = await prometheus.queryRange(filledIn(expr), fromS, toS, 0.5);
        series.push({ legend: legendFormat, range });
      }
      panels.push({ title, type, unit: fieldConfig?.defaults.unit ?? "", series });
    }
    if (ARTEFACTS) {
      mkdirSync(ARTEFACTS, { recursive: true });
      writeFileSync(join(ARTEFACTS, `${name}.html`), pageOf(name, panels));
    }
  }
  if (ARTEFACTS) writeFileSync(join(ARTEFACTS, "panels.txt"), `${shown.join("\n")}\n`);

  for (const { record } of RECORDINGS) if ((await seen(prometheus, record)).length === 0) empty.push(record);
  for (const { alert, expr } of ALERTS)
    if ((await seen(prometheus, asked(expr))).length === 0) empty.push(`${alert}: ${asked(expr)}`);
  assert.deepEqual(empty, []);

  here.gateway.reloadFailed([]);
  await prometheus.until('ALERTS{alertname="TollgateConfigReloadFailed",alertstate="firing"}');
  here.gateway.reload(here.settings);
  await prometheus.until('ALERTS{alertname="TollgateConfigReloadFailed"}', (samples) => samples.length === 0);
});

function sumOf(samples: readonly { readonly value: number }[]): number {
  return samples.reduce((sum, { value }) => sum + value, 0);
}

function isRequest({ msg }: Record<string, unknown>): boolean {
  return msg === "request";
}
