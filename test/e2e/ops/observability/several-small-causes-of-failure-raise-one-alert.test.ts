/** An outage may show as several causes, none of which fails many requests alone. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { RULE_FILES } from "./rule-files.ts";

/** How many of a hundred requests a minute end with each cause. */
type Minute = Readonly<Record<string, number>>;

const ALERT = "TollgateRequestsFail";

function scene(name: string, minute: Minute, summary: string | undefined): object {
  const input_series = Object.entries(minute).map(([cause, count]) => ({
    series: `tollgate_requests_total{cause="${cause}"}`,
    values: `0+${count}x60`,
  }));
  const annotations = { summary, runbook: `docs/runbook.md#${ALERT.toLowerCase()}` };
  const exp_alerts = summary === undefined ? [] : [{ exp_labels: { severity: "page" }, exp_annotations: annotations }];
  return { name, interval: "1m", input_series, alert_rule_test: [{ eval_time: "30m", alertname: ALERT, exp_alerts }] };
}

test("two causes below the threshold, and above it together, raise one alert that names both with their shares", () => {
  const tests = [
    scene(
      "together above",
      { none: 93, upstream_timeout: 4, store_unavailable: 3, internal: 0 },
      "7% of requests fail: upstream_timeout 4%, store_unavailable 3%",
    ),
    scene("together below", { none: 96, upstream_timeout: 2, store_unavailable: 2 }, undefined),
    scene("one alone above", { none: 90, upstream_timeout: 10 }, "10% of requests fail: upstream_timeout 10%"),
    scene("causes of clients", { none: 50, insufficient_balance: 30, not_json: 20 }, undefined),
  ];
  const dir = mkdtempSync(join(tmpdir(), "tollgate-test-"));
  try {
    const file = join(dir, "scenes.yml");
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ rule_files: RULE_FILES, evaluation_interval: "1m", tests }));
    execFileSync("promtool", ["test", "rules", file], { stdio: "pipe" });
  } finally {
    rmSync(dir, { recursive: true });
  }
});
