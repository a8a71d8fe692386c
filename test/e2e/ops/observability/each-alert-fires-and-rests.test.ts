/** Each alert of deploy/alerts.yml, evaluated by Prometheus' own tool: silent on a good day, firing on its bad day. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { ALERTS, RULE_FILES } from "./rule-files.ts";

/** A day on which all is well: every series that any alert reads, at its normal value. */
const GOOD_DAY: Readonly<Record<string, string>> = {
  'up{job="tollgate"}': "1+0x100",
  'tollgate_requests_total{cause="none",status="200"}': "0+100x100",
  'tollgate_requests_total{cause="upstream_timeout",status="403"}': "0+1x100",
  'tollgate_requests_total{cause="insufficient_balance",status="403",group="g"}': "0+0x100",
  'tollgate_time_to_first_token_seconds_bucket{model="m",le="5"}': "0+97x100",
  'tollgate_time_to_first_token_seconds_count{model="m"}': "0+100x100",
  'nodejs_eventloop_lag_p99_seconds{job="tollgate"}': "0.012+0x100",
  tollgate_config_last_reload_success: "1+0x100",
  tollgate_config_generation: "7+0x100",
  'tollgate_worker_config_generation{worker="1"}': "7+0x100",
  'tollgate_worker_config_generation{worker="2"}': "0+0x100",
  'tollgate_worker_up{worker="1"}': "1+0x100",
  'tollgate_worker_ends_total{cause="killed"}': "0+0x100",
  'tollgate_worker_ends_total{cause="drained"}': "0+1x100",
  'tollgate_upstream_healthy{upstream="east"}': "1+0x100",
  'tollgate_upstream_attempts_total{upstream="east",outcome="upstream_forbidden"}': "0+0x100",
  'tollgate_other_model_answers_total{upstream="east",model="m"}': "0+0x100",
  tollgate_store_up: "1+0x100",
  tollgate_store_breaker_open: "0+0x100",
  tollgate_store_older: "0+0x100",
  tollgate_journal_oldest_seconds: "0.5+0x100",
  tollgate_journal_fill_ratio: "0.2+0x100",
  tollgate_ledger_unbalanced_accounts: "0+0x100",
  tollgate_unverified_charges: "0+0x100",
  tollgate_dead_letters: "0+0x100",
  tollgate_unrecorded_charges: "0+0x100",
  tollgate_restored_charges_total: "0+0x100",
  'tollgate_surprising_counts_total{upstream="east",model="m",kind="output_above_max"}': "0+0x100",
  tollgate_accounts_low: "0+0x100",
  'tollgate_entitlements_expiring{within="1d"}': "0+0x100",
  'tollgate_code_failures_total{outcome="blocked"}': "0+0x100",
  tollgate_notices_oldest_seconds: "30+0x100",
  tollgate_notices_stopped: "0+0x100",
};

/** The one series that differs on an alert's bad day; the whole day is bad, at one sample a minute. */
const BAD_DAYS: Readonly<Record<string, readonly [series: string, values: string]>> = {
  TollgateDown: ['up{job="tollgate"}', "0+0x100"],
  TollgateRequestsFail: ['tollgate_requests_total{cause="upstream_timeout",status="403"}', "0+10x100"],
  TollgateFirstTokenBurnsFast: ['tollgate_time_to_first_token_seconds_bucket{model="m",le="5"}', "0+20x100"],
  TollgateFirstTokenBurnsSlowly: ['tollgate_time_to_first_token_seconds_bucket{model="m",le="5"}', "0+65x100"],
  TollgateLoopDelayed: ['nodejs_eventloop_lag_p99_seconds{job="tollgate"}', "0.3+0x100"],
  TollgateConfigReloadFailed: ["tollgate_config_last_reload_success", "0+0x100"],
  TollgateWorkersDisagree: ['tollgate_worker_config_generation{worker="1"}', "6+0x100"],
  TollgateWorkerDown: ['tollgate_worker_up{worker="1"}', "0+0x100"],
  TollgateWorkersEnd: ['tollgate_worker_ends_total{cause="killed"}', "0+1x100"],
  TollgateUpstreamDown: ['tollgate_upstream_healthy{upstream="east"}', "0+0x100"],
  TollgateUpstreamForbids: [
    'tollgate_upstream_attempts_total{upstream="east",outcome="upstream_forbidden"}',
    "0+1x100",
  ],
  TollgateOtherModelAnswers: ['tollgate_other_model_answers_total{upstream="east",model="m"}', "0+1x100"],
  TollgateStoreDown: ["tollgate_store_up", "0+0x100"],
  TollgateStoreLostData: ["tollgate_store_older", "1+0x100"],
  TollgateStoreSlow: ["tollgate_store_breaker_open", "1+0x100"],
  TollgateJournalNotDraining: ["tollgate_journal_oldest_seconds", "61+0x100"],
  TollgateJournalFilling: ["tollgate_journal_fill_ratio", "0.61+0x100"],
  TollgateLedgerUnbalanced: ["tollgate_ledger_unbalanced_accounts", "1+0x100"],
  TollgateChargesUnverified: ["tollgate_unverified_charges", "1+0x100"],
  TollgateDeadLetters: ["tollgate_dead_letters", "1+0x100"],
  TollgateChargesUnrecorded: ["tollgate_unrecorded_charges", "1+0x100"],
  TollgateStoreLostCharges: ["tollgate_restored_charges_total", "0+1x100"],
  TollgateSurprisingCounts: [
    'tollgate_surprising_counts_total{upstream="east",model="m",kind="output_above_max"}',
    "0+1x100",
  ],
  TollgateToolCallsUnpaid: ['tollgate_absorbed_usd_total{upstream="east",cause="unpaid_tool_calls"}', "0+1x100"],
  TollgateFundsRunOut: ['tollgate_requests_total{cause="insufficient_balance",status="403",group="g"}', "0+2x100"],
  TollgateAccountsNearEmpty: ["tollgate_accounts_low", "2+0x100"],
  TollgateCardsExpiring: ['tollgate_entitlements_expiring{within="1d"}', "3+0x100"],
  TollgateNoticesLate: ["tollgate_notices_oldest_seconds", "4000+0x100"],
  TollgateNoticesStopped: ["tollgate_notices_stopped", "1+0x100"],
  TollgateCodesGuessed: ['tollgate_code_failures_total{outcome="blocked"}', "0+1x100"],
};

const EVALUATED_AT = "90m";

function day(name: string, changed: Readonly<Record<string, string>>, firing: readonly string[]): object {
  return {
    name,
    interval: "1m",
    input_series: Object.entries({ ...GOOD_DAY, ...changed }).map(([series, values]) => ({ series, values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: EVALUATED_AT,
        exp_samples: firing.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      },
    ],
  };
}

/** A day of the fast burn is one of the slow burn too. */
const COMPANY: Readonly<Record<string, readonly string[]>> = {
  TollgateFirstTokenBurnsFast: ["TollgateFirstTokenBurnsSlowly"],
};

test("each alert is silent on a good day and fires on its bad day, and no other one does", () => {
  assert.deepEqual(Object.keys(BAD_DAYS).sort(), ALERTS.map(({ alert }) => alert).sort());
  const tests = [
    day("a good day", {}, []),
    ...Object.entries(BAD_DAYS).map(([alert, [series, values]]) =>
      day(alert, { [series]: values }, [alert, ...(COMPANY[alert] ?? [])].sort()),
    ),
  ];
  const dir = mkdtempSync(join(tmpdir(), "tollgate-test-"));
  try {
    const file = join(dir, "days.yml");
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ rule_files: RULE_FILES, evaluation_interval: "1m", tests }));
    execFileSync("promtool", ["test", "rules", file], { stdio: "pipe" });
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("recording rules compute the sums that their names say", () => {
  const file = fileURLToPath(new URL("recording.promtool.yml", import.meta.url));
  execFileSync("promtool", ["test", "rules", file], { stdio: "pipe" });
});

test("each alert links to its paragraph in the runbook, and each paragraph belongs to one", () => {
  const runbook = readFileSync(new URL("../../../../docs/runbook.md", import.meta.url), "utf8");
  const paragraphs = [...runbook.matchAll(/^### (\S+)$/gm)].map((match) => match[1]);
  assert.deepEqual(paragraphs.sort(), ALERTS.map(({ alert }) => alert).sort());
  for (const { alert, annotations, labels } of ALERTS) {
    assert.equal(annotations.runbook, `docs/runbook.md#${alert.toLowerCase()}`);
    assert.match(labels.severity, /^(page|ticket|info)$/);
  }
});
