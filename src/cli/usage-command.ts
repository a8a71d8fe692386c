/** `tollgate usage`: sums of spending over all accounts, as a table, CSV or JSON. */

import type { JsonObject } from "../values/json-object.ts";
import { formatUsd } from "../values/money.ts";
import { type AdminClient, retryingClient } from "./admin-client.ts";
import { type CommandResult, itemsOf, query } from "./admin-commands.ts";
import { readAmount } from "./amounts.ts";
import { type Ask, type Command, Option } from "./command-line.ts";
import { csv } from "./output/csv.ts";
import { LISTING_FORMATS } from "./output/listing.ts";
import { cell, table } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";

interface UsageOptions {
  readonly account?: string;
  readonly by?: string;
  readonly since?: string;
  readonly until?: string;
  readonly format?: string;
}

/** Amounts by the admin API's member names, with the titles of the table. */
const MONEY = {
  usd: "CHARGED USD",
  cost_usd: "COST USD",
  absorbed_usd: "ABSORBED USD",
  margin_usd: "MARGIN USD",
} as const;
const MONEY_MEMBERS = Object.keys(MONEY) as (keyof typeof MONEY)[];

/** Counts by the admin API's member names, with the titles of the table. */
const COUNTS = {
  requests: "REQUESTS",
  input_tokens: "INPUT",
  cached_input_tokens: "CACHED",
  cache_write_tokens: "CACHE WRITE",
  output_tokens: "OUTPUT",
  reasoning_tokens: "REASONING",
} as const;
const COUNT_MEMBERS = Object.keys(COUNTS) as (keyof typeof COUNTS)[];

interface Sum {
  readonly money: readonly bigint[];
  readonly counts: readonly number[];
}

const NOTHING: Sum = { money: MONEY_MEMBERS.map(() => 0n), counts: COUNT_MEMBERS.map(() => 0) };

export async function showUsage(
  impatient: AdminClient,
  options: UsageOptions,
  terminal: Terminal,
): Promise<CommandResult> {
  const admin = retryingClient(impatient, terminal);
  const { account, by, since, until, format = "table" } = options;
  const asked = { account, by, since, until };
  const sums = new Map<string, Sum>();
  let body: JsonObject;
  let cursor: string | undefined;
  let pages = 0;
  do {
    ({ body } = await admin.call("GET", `/usage${query({ ...asked, cursor })}`));
    for (const item of itemsOf(body)) {
      const value = String(item[String(body.by)]);
      sums.set(value, added(sums.get(value) ?? NOTHING, readSum(item)));
    }
    cursor = typeof body.next === "string" ? body.next : undefined;
    pages += 1;
    if (cursor !== undefined) terminal.progress(`Summing up: ${pages} pages`);
  } while (cursor !== undefined);
  terminal.clear();
  const name = String(body.by);
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([value, sum]) => ({ [name]: value, ...shown(sum) }));
  const total = shown([...sums.values()].reduce(added, NOTHING));
  const json = { since: body.since, until: body.until, by: name, items: rows, total, total_usd: total.usd };
  if (format === "json") return { json, text: `${JSON.stringify(json)}\n` };
  if (format === "csv") return { json, text: csv([name, ...MONEY_MEMBERS, ...COUNT_MEMBERS], rows) };
  const columns = [
    { title: name.toUpperCase(), member: name },
    ...MONEY_MEMBERS.map((member) => ({ title: MONEY[member], member, right: true })),
    ...COUNT_MEMBERS.map((member) => ({ title: COUNTS[member], member, right: true })),
  ];
  const heading = `From ${cell(body.since)} to ${cell(body.until)}, UTC\n`;
  return { json, text: heading + table(columns, [...rows, { [name]: "total", ...total }]) };
}

function shown({ money, counts }: Sum): JsonObject {
  const amounts = MONEY_MEMBERS.map((member, index): [string, string] => [member, formatUsd(money[index] ?? 0n)]);
  const named = COUNT_MEMBERS.map((member, index): [string, number] => [member, counts[index] ?? 0]);
  return Object.fromEntries<string | number>([...amounts, ...named]);
}

function added(a: Sum, b: Sum): Sum {
  return {
    money: a.money.map((amount, index) => amount + (b.money[index] ?? 0n)),
    counts: a.counts.map((count, index) => count + (b.counts[index] ?? 0)),
  };
}

function readSum(item: JsonObject): Sum {
  return {
    money: MONEY_MEMBERS.map((member) => readAmount(item[member])),
    counts: COUNT_MEMBERS.map((member) => Number(item[member] ?? 0)),
  };
}

/** Values of `by`, as in the admin API; a test compares them. */
const USAGE_BY = ["account", "group", "model", "key", "day", "upstream"] as const;

/** Defines `tollgate usage`. */
export function addUsageCommand(program: Command, ask: Ask): void {
  program
    .command("usage")
    .description("sum up spending by account, group, model, key, day or upstream; days are UTC days of the requests")
    .option("--account <name>", "one account; default: all")
    .addOption(new Option("--by <thing>", "what to sum up by; default: account").choices(USAGE_BY))
    .option("--since <day>", "first day, YYYY-MM-DD; default: the last 30 days")
    .option("--until <day>", "last day, YYYY-MM-DD; default: today")
    .addOption(new Option("--format <format>", "output format").choices(LISTING_FORMATS).default("table"))
    .action((options: UsageOptions) => ask((c, terminal) => showUsage(c, options, terminal)));
}
