/** Spend, cost that no client pays for, and findings that need a person. */
import { type Dashboard, UNIT } from "./panels.ts";

const SPENT = '{group=~"$group",model=~"$model"}';
const COST = '{group=~"$group",model=~"$model",upstream=~"$upstream"}';

/** Charges less cost. A model whose requests have all been absorbed has only cost. */
function margin(by: string, spent: string, cost: string): string {
  const charged = `sum${by} (${spent})`;
  const paid = `sum${by} (${cost})`;
  const nothing = by === "" ? "vector(0)" : `${paid} * 0`;
  return `(${charged} or ${nothing}) - (${paid} or ${by === "" ? "vector(0)" : `${charged} * 0`})`;
}

export const MONEY: Dashboard = {
  uid: "tollgate-money",
  title: "Tollgate / Money",
  description: "Spend per group, model and day; cost that no client pays for; funds and cards that run out.",
  rows: [
    {
      title: "At a glance",
      panels: [
        {
          kind: "stat",
          title: "Spend in this time range (USD)",
          description: "What clients were charged, as of the last scrape. The ledger is the record.",
          unit: UNIT.usd,
          queries: [{ expr: `sum(increase(tollgate_spend_usd_total${SPENT}[$__range]))`, legend: "spend" }],
        },
        {
          kind: "stat",
          title: "Absorbed in this time range (USD)",
          description: "Upstream cost that no client pays for: nothing was delivered, or a bill was above its hold.",
          unit: UNIT.usd,
          queries: [
            { expr: 'sum(increase(tollgate_absorbed_usd_total{group=~"$group"}[$__range]))', legend: "absorbed" },
          ],
          thresholds: { warn: 1, alarm: 20 },
        },
        {
          kind: "stat",
          title: "Set aside for running requests (USD)",
          description: "Holds of requests being answered now. With no request running it is 0.",
          unit: UNIT.usd,
          queries: [{ expr: "sum(tollgate_holds_usd)", legend: "holds" }],
        },
        {
          kind: "stat",
          title: "Accounts near empty",
          description: "Accounts once topped up that have less than 1 USD available, as of the last hourly audit.",
          unit: UNIT.count,
          queries: [{ expr: "max(tollgate_accounts_low)", legend: "accounts" }],
        },
        {
          kind: "stat",
          title: "Time cards that end within a day",
          description: "As of the last hourly audit. Their holders may want a new one.",
          unit: UNIT.count,
          queries: [{ expr: 'max(tollgate_entitlements_expiring{within="1d"})', legend: "cards" }],
        },
        {
          kind: "stat",
          title: "Books that need a person",
          description:
            "Dead letters, charges that are recorded nowhere or cannot be verified, and accounts out of balance. If above 0, see docs/runbook.md.",
          unit: UNIT.count,
          queries: [
            {
              expr: "sum(tollgate_dead_letters) + sum(tollgate_unrecorded_charges) + sum(tollgate_unverified_charges) + max(tollgate_ledger_unbalanced_accounts)",
              legend: "findings",
            },
          ],
          thresholds: { warn: 1, alarm: 1 },
        },
      ],
    },
    {
      title: "Spend",
      panels: [
        {
          kind: "timeseries",
          title: "Spend per group (USD per hour)",
          description: "What each group's clients are charged.",
          unit: UNIT.usd,
          queries: [
            {
              expr: `3600 * sum by (group) (rate(tollgate_spend_usd_total${SPENT}[$__rate_interval]))`,
              legend: "{{group}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Spend per model (USD per hour)",
          description: "If a model suddenly leads, a client has switched models, or a client runs in a loop.",
          unit: UNIT.usd,
          queries: [
            {
              expr: `3600 * sum by (model) (rate(tollgate_spend_usd_total${SPENT}[$__rate_interval]))`,
              legend: "{{model}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Spend of the last 24 hours per group (USD)",
          description: "A sliding day; compare it with your budget for the group.",
          unit: UNIT.usd,
          queries: [{ expr: `sum by (group) (increase(tollgate_spend_usd_total${SPENT}[1d]))`, legend: "{{group}}" }],
        },
        {
          kind: "table",
          title: "Spend by group and model in this time range (USD)",
          description: "For accounts and keys use `tollgate usage --by key`. Neither is a metric label, by design.",
          unit: UNIT.usd,
          queries: [
            {
              expr: `sort_desc(sum by (group, model) (increase(tollgate_spend_usd_total${SPENT}[$__range])))`,
              legend: "{{group}} {{model}}",
            },
          ],
          width: 12,
        },
        {
          kind: "timeseries",
          title: "Price of a thousand tokens as paid (USD, by group)",
          description: "Spend divided by tokens: falls with cached input, rises with reasoning and expensive models.",
          unit: UNIT.usd,
          queries: [
            {
              expr: `1000 * sum by (group) (rate(tollgate_spend_usd_total${SPENT}[$__rate_interval])) / sum by (group) (rate(tollgate_tokens_total{group=~"$group",model=~"$model",kind!="reasoning"}[$__rate_interval]))`,
              legend: "{{group}}",
            },
          ],
          width: 12,
        },
      ],
    },
    {
      title: "Cost and margin",
      panels: [
        {
          kind: "timeseries",
          title: "Charged per model (USD per hour)",
          description:
            "What clients pay, at the models' prices and the groups' multipliers. Cards without a quota pay once, elsewhere.",
          unit: UNIT.usd,
          queries: [
            {
              expr: `3600 * sum by (model) (rate(tollgate_spend_usd_total${SPENT}[$__rate_interval]))`,
              legend: "{{model}}",
            },
          ],
          width: 6,
        },
        {
          kind: "timeseries",
          title: "Cost per upstream (USD per hour)",
          description:
            "What each upstream is expected to bill, at the routes' `cost`. Compare with the invoice: `tollgate reconcile`.",
          unit: UNIT.usd,
          queries: [
            {
              expr: `3600 * sum by (upstream) (rate(tollgate_cost_usd_total${COST}[$__rate_interval]))`,
              legend: "{{upstream}}",
            },
          ],
          width: 6,
        },
        {
          kind: "timeseries",
          title: "Absorbed per group (USD per hour)",
          description:
            "What no client pays for. Cost already includes the part that upstreams bill; it does not include bills above an account's funds.",
          unit: UNIT.usd,
          queries: [
            {
              expr: '3600 * sum by (group) (rate(tollgate_absorbed_usd_total{group=~"$group"}[$__rate_interval]))',
              legend: "{{group}}",
            },
          ],
          width: 6,
        },
        {
          kind: "timeseries",
          title: "Margin per model (USD per hour)",
          description:
            "Charged less cost. Below 0: the model is sold below what it costs, or most of its cost is absorbed.",
          unit: UNIT.usd,
          queries: [
            {
              expr: `3600 * (${margin(
                " by (model)",
                `rate(tollgate_spend_usd_total${SPENT}[$__rate_interval])`,
                `rate(tollgate_cost_usd_total${SPENT}[$__rate_interval])`,
              )})`,
              legend: "{{model}}",
            },
          ],
          signed: true,
          width: 6,
        },
        {
          kind: "stat",
          title: "Cost in this time range (USD)",
          description: "What upstreams are expected to bill, including absorbed attempts.",
          unit: UNIT.usd,
          queries: [{ expr: `sum(increase(tollgate_cost_usd_total${SPENT}[$__range]))`, legend: "cost" }],
          width: 12,
        },
        {
          kind: "stat",
          title: "Margin in this time range (USD)",
          description: "Charged less cost; `tollgate usage --by model` has the exact figures.",
          unit: UNIT.usd,
          queries: [
            {
              expr: margin(
                "",
                `increase(tollgate_spend_usd_total${SPENT}[$__range])`,
                `increase(tollgate_cost_usd_total${SPENT}[$__range])`,
              ),
              legend: "margin",
            },
          ],
          width: 12,
        },
      ],
    },
    {
      title: "Not paid by clients",
      panels: [
        {
          kind: "timeseries",
          title: "Absorbed by cause (USD per hour)",
          description:
            "`client_gone`: clients that disconnected before the first word. `over_hold`: a bill that neither the hold nor free funds covered. `upstream_...`: upstreams that failed. docs/reconcile.md has all causes.",
          unit: UNIT.usd,
          queries: [
            {
              expr: '3600 * sum by (cause) (rate(tollgate_absorbed_usd_total{group=~"$group"}[$__rate_interval]))',
              legend: "{{cause}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Absorbed by upstream (USD per hour)",
          description: "Which server causes cost without revenue.",
          unit: UNIT.usd,
          queries: [
            {
              expr: '3600 * sum by (upstream) (rate(tollgate_absorbed_usd_total{group=~"$group",upstream=~"$upstream|none"}[$__rate_interval]))',
              legend: "{{upstream}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Set aside for running requests (USD)",
          description: "Holds by instance. If the minimum never returns to 0 at night, holds leak.",
          unit: UNIT.usd,
          queries: [{ expr: "sum by (instance) (tollgate_holds_usd)", legend: "{{instance}}" }],
        },
        {
          kind: "timeseries",
          title: "Streams without a limit: raises of the hold (per second, by outcome)",
          description: "The hold is raised in steps. When it cannot grow any more, the stream ends as a truncation.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: 'sum by (outcome) (rate(tollgate_hold_extensions_total{group=~"$group"}[$__rate_interval]))',
              legend: "{{outcome}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Surprising counts (per hour, by upstream, model and kind)",
          description: "Upstreams that count more than the catalog or the request allows. The counts are charged.",
          unit: UNIT.count,
          queries: [
            {
              expr: "3600 * sum by (upstream, model, kind) (rate(tollgate_surprising_counts_total[$__rate_interval]))",
              legend: "{{upstream}} {{model}}: {{kind}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Streams whose client disconnected (per second, by who counted)",
          description:
            "`upstream`: read until the upstream's count. `estimate`: charged by what was shown and by the silent time.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: "sum by (counted) (rate(tollgate_left_streams_total[$__rate_interval]))",
              legend: "{{counted}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Disconnected before the first byte (per second, by who pays)",
          description: "`absorbed`: within the account's `client_gone_allowance`. `client`: beyond it.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: "sum by (paid_by) (rate(tollgate_left_before_output_total[$__rate_interval]))",
              legend: "{{paid_by}}",
            },
          ],
        },
      ],
    },
    {
      title: "Funds and cards",
      panels: [
        {
          kind: "timeseries",
          title: "Holds of unusual size (per second, by kind)",
          description:
            "`clamped`: the output limit was lowered. `dearest`: held at the most expensive case, because the account's charges repeatedly exceeded its holds.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: 'sum by (group, kind) (rate(tollgate_unusual_holds_total{group=~"$group"}[$__rate_interval]))',
              legend: "{{group}}: {{kind}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Refused for lack of funds (per second, by cause)",
          description: "Balance too small, no running card, quota used up. The client's error message says which.",
          unit: UNIT.perSecond,
          queries: [
            {
              expr: 'sum by (group, cause) (rate(tollgate_requests_total{group=~"$group",cause=~"insufficient_balance|no_entitlement|quota_used"}[$__rate_interval]))',
              legend: "{{group}}: {{cause}}",
            },
          ],
        },
        {
          kind: "timeseries",
          title: "Accounts near empty, and cards about to end",
          description: "As of the hourly audit.",
          unit: UNIT.count,
          queries: [
            { expr: "max(tollgate_accounts_low)", legend: "accounts below 1 USD" },
            { expr: "max by (within) (tollgate_entitlements_expiring)", legend: "cards that end within {{within}}" },
          ],
        },
        {
          kind: "timeseries",
          title: "Codes that could not be redeemed (per second)",
          description: "`failed`: wrong, used or voided codes. `blocked`: tries of accounts that guess codes.",
          unit: UNIT.perSecond,
          queries: [
            { expr: "sum by (outcome) (rate(tollgate_code_failures_total[$__rate_interval]))", legend: "{{outcome}}" },
          ],
        },
        {
          kind: "timeseries",
          title: "Charges that the store lost and the journal replayed",
          description: "After a failover the journal replays what the new primary lacks. Each was charged once.",
          unit: UNIT.count,
          queries: [{ expr: "sum(increase(tollgate_restored_charges_total[$__rate_interval]))", legend: "restored" }],
        },
      ],
    },
  ],
};
