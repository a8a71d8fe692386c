/** `tollgate usage`: sums of what was spent, over all pages of accounts, as a table, CSV or JSON. */
import { formatUsd } from "../values/money.ts";
import type { AdminClient, Fields } from "./admin-client.ts";
import { itemsOf, type Outcome, query } from "./admin-commands.ts";
import { csv } from "./csv.ts";
import { CliFailure } from "./failure.ts";
import { cell, table } from "./table.ts";

export interface UsageOptions {
  readonly account?: string;
  readonly by?: string;
  readonly since?: string;
  readonly until?: string;
  readonly format?: string;
}

/** @throws CliFailure 2 for a format that is none */
export async function showUsage(admin: AdminClient, options: UsageOptions): Promise<Outcome> {
  const { account, by, since, until, format = "table" } = options;
  if (!["table", "csv", "json"].includes(format)) throw new CliFailure(2, "--format must be table, csv or json.");
  const asked = { account, by, since, until };
  const totals = new Map<string, bigint>();
  let body: Fields;
  let cursor: string | undefined;
  do {
    ({ body } = await admin.call("GET", `/usage${query({ ...asked, cursor })}`));
    for (const item of itemsOf(body)) add(totals, String(item[String(body.by)]), item.usd);
    cursor = typeof body.next === "string" ? body.next : undefined;
  } while (cursor !== undefined);
  const name = String(body.by);
  const rows = [...totals]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([value, usd]) => ({ [name]: value, usd: formatUsd(usd) }));
  const total = formatUsd([...totals.values()].reduce((sum, usd) => sum + usd, 0n));
  const json = { since: body.since, until: body.until, by: name, items: rows, total_usd: total };
  if (format === "json") return { json, text: `${JSON.stringify(json)}\n` };
  if (format === "csv") return { json, text: csv([name, "usd"], rows) };
  const columns = [
    { title: name.toUpperCase(), member: name },
    { title: "USD", member: "usd", right: true },
  ];
  const heading = `From ${cell(body.since)} to ${cell(body.until)}, UTC\n`;
  return { json, text: heading + table(columns, [...rows, { [name]: "total", usd: total }]) };
}

/** Adds an amount as the admin API writes it; sums over accounts may pass what one account may hold. */
function add(totals: Map<string, bigint>, value: string, usd: unknown): void {
  const match = /^([0-9]+)\.([0-9]{1,9})$/.exec(String(usd));
  if (match === null) throw new CliFailure(1, "The gateway's answer has an amount that is none.");
  const [, whole = "", fraction = ""] = match;
  const amount = BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
  totals.set(value, (totals.get(value) ?? 0n) + amount);
}
